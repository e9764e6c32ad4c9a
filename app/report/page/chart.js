/* Bars, and plots of points and lines, each with its numbers as a table. */
const SHAPES = ['circle', 'square', 'triangle', 'diamond', 'cross'];
const SERIES = ['read', 'write', 'download', 'exchange', 'multiply', 'upload', 'pack'];
const seriesColour = at => `var(--${SERIES[at % SERIES.length]})`;

function marker(x, y, at, size, fill) {
  const shape = SHAPES[at % SHAPES.length], paint = {fill, stroke: 'var(--paper)', 'stroke-width': 1.5};
  if (shape === 'circle') return svg('circle', {cx: x, cy: y, r: size, ...paint});
  if (shape === 'square')
    return svg('rect', {x: x - size * .9, y: y - size * .9, width: size * 1.8, height: size * 1.8, ...paint});
  const points = {
    triangle: [[0, -1.2], [1.1, .8], [-1.1, .8]],
    diamond: [[0, -1.3], [1.1, 0], [0, 1.3], [-1.1, 0]],
    cross: [
      [-1, -.4], [-.4, -.4], [-.4, -1], [.4, -1], [.4, -.4], [1, -.4], [1, .4], [.4, .4], [.4, 1], [-.4, 1],
      [-.4, .4], [-1, .4]
    ]
  }[shape];
  return svg('polygon', {points: points.map(p => `${x + p[0] * size},${y + p[1] * size}`).join(' '), ...paint});
}

/* rows: {name, value, most, text, colour, ticks: [{at, title}], ring}; a bar each. */
function bars(rows, most, thin, label) {
  const width = value => Math.max(0, Math.min(100, 100 * value / (most || 1))) + '%';
  return html(
      'div', {class: 'bars' + (thin ? ' thin' : ''), role: 'list', 'aria-label': label},
      rows.map(
          row =>
              [html(
                   'div', {class: 'name', role: 'listitem', 'aria-label': `${row.name}: ${row.said || row.text}`},
                   row.name),
               html(
                   'div', {class: 'track', 'aria-hidden': true, title: row.title},
                   html('i', {style: {width: width(row.value), background: row.colour || 'var(--accent)'}}),
                   (row.ticks || []).map(tick => html('i', {
                                           class: tick.ring ? 'ring' : 'tick',
                                           title: tick.title,
                                           style: {left: width(tick.at)}
                                         }))),
               html('div', {class: 'value', 'aria-hidden': true}, row.parts || row.text)]));
}

function niceTicks(low, high, log, count) {
  const ticks = [];
  if (log) {
    const decades = Math.log10(high / low), step = Math.max(1, Math.ceil(decades / count));
    for (let e = Math.ceil(Math.log10(low) - 1e-9); e <= Math.log10(high) + 1e-9; e += step) ticks.push(10 ** e);
    if (decades < 2.1) {
      const more = decades < 1.1 ? [2, 3, 5] : [3];
      for (let e = Math.floor(Math.log10(low)); e <= Math.log10(high); e++) {
        for (const m of more)
          if (m * 10 ** e >= low * .999 && m * 10 ** e <= high * 1.001) ticks.push(m * 10 ** e);
      }
    }
    return ticks;
  }
  const raw = (high - low) / count, size = 10 ** Math.floor(Math.log10(raw || 1));
  const step = [1, 2, 5, 10].map(m => m * size).find(s => s >= raw) || 1;
  for (let t = Math.ceil(low / step) * step; t <= high + step * 1e-9; t += step) ticks.push(t);
  return ticks;
}

function range(values, log, zero) {
  const good = values.filter(v => finite(v) && (!log || v > 0));
  let low = zero && !log ? 0 : Math.min(...good), high = Math.max(...good);
  if (!good.length) return [log ? 1 : 0, log ? 10 : 1];
  if (log) return [low / 1.6, high * 1.9];
  if (low === high) high = low + (Math.abs(low) || 1);
  return [low, high + (high - low) * .06];
}

/* series: {name, points: [[x, y, text]], line, dashed, dots, label}; axes: {label, log, format, from, to, ticks}. */
function plot({title, series, x, y, height = 300, legend = true, say}) {
  const figure = html('figure', {});
  const all = at => series.flatMap(s => s.points.map(p => p[at]));
  const limits = (axis, at) => axis.range && axis.range.every(v => finite(v) && (!axis.log || v > 0)) ?
      axis.range :
      range(all(at), axis.log, axis.zero);
  const [x0, x1] = limits(x, 0), [y0, y1] = limits(y, 1);
  const holder = html('div', {});
  const place = (value, low, high, log) =>
      log ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  function draw() {
    const width = Math.max(260, holder.clientWidth || 520), left = 86, right = 14, top = 24, bottom = 42;
    const px = v => left + place(v, x0, x1, x.log) * (width - left - right);
    const py = v => height - bottom - place(v, y0, y1, y.log) * (height - top - bottom);
    const inside = p => finite(p[0]) && finite(p[1]) && (!x.log || p[0] > 0) && (!y.log || p[1] > 0);
    const root = svg('svg', {viewBox: `0 0 ${width} ${height}`, height, role: 'img', 'aria-label': say || title});
    const clip = 'clip' + Math.random().toString(36).slice(2);
    root.append(
        svg('clipPath', {id: clip},
            svg('rect', {x: left, y: top, width: width - left - right, height: height - top - bottom})));
    for (const t of (y.ticks || niceTicks(y0, y1, y.log, 5)).filter(v => v >= y0 * .999 && v <= y1 * 1.001)) {
      root.append(
          svg('line', {class: 'grid', x1: left, x2: width - right, y1: py(t), y2: py(t)}),
          svg('text', {x: left - 8, y: py(t) + 4, 'text-anchor': 'end'}, (y.format || digits)(t)));
    }
    for (const t of (x.ticks || niceTicks(x0, x1, x.log, width < 420 ? 4 : 7))
             .filter(v => v >= x0 * .999 && v <= x1 * 1.001)) {
      root.append(
          svg('line', {class: 'grid', x1: px(t), x2: px(t), y1: top, y2: height - bottom}),
          svg('text', {x: px(t), y: height - bottom + 17, 'text-anchor': 'middle'}, (x.format || digits)(t)));
    }
    root.append(
        svg('text', {x: (left + width - right) / 2, y: height - 6, 'text-anchor': 'middle'}, x.label),
        svg('text', {x: left - 8, y: 10, 'text-anchor': 'end'}, y.label));
    series.forEach((s, at) => {
      const paint = s.colour || seriesColour(at), points = s.points.filter(inside);
      if (s.line !== false && points.length > 1) {
        root.append(svg('polyline', {
          points: points.map(p => `${px(p[0])},${py(p[1])}`).join(' '),
          fill: 'none',
          stroke: paint,
          'stroke-width': 2,
          'stroke-dasharray': s.dashed ? '5 4' : null,
          'clip-path': `url(#${clip})`
        }));
      }
      for (const p of s.dots === false ? [] : points) {
        const dot = marker(px(p[0]), py(p[1]), at, s.size || 5, paint);
        dot.append(
            svg('title', {}, p[2] || `${s.name}: ${(x.format || digits)(p[0])}, ${(y.format || digits)(p[1])}`));
        root.append(dot);
      }
      if (s.label && points.length) {
        const p = points[s.labelAt === 'first' ? 0 : points.length - 1];
        const end = px(p[0]) > width * .6;
        root.append(
            svg('text', {
              class: s.strong ? 'strong' : null,
              x: px(p[0]) + (end ? -9 : 9),
              y: py(p[1]) - 8,
              'text-anchor': end ? 'end' : 'start'
            },
                s.label));
      }
    });
    holder.replaceChildren(root);
  }
  if (legend && series.length > 1) {
    figure.append(html(
        'ul', {class: 'legend'},
        series.map(
            (s, at) => html(
                'li', {},
                svg('svg', {width: 18, height: 14, 'aria-hidden': true},
                    s.line !== false && s.points.length > 1 && svg('line', {
                      x1: 0,
                      x2: 18,
                      y1: 7,
                      y2: 7,
                      stroke: s.colour || seriesColour(at),
                      'stroke-width': 2,
                      'stroke-dasharray': s.dashed ? '4 3' : null
                    }),
                    s.dots === false ? null : marker(9, 7, at, 4, s.colour || seriesColour(at))),
                s.name))));
  }
  figure.append(
      holder,
      dataTable(
          [x.label, ...series.map(s => s.name)],
          [...new Set(all(0))].sort((a, b) => a - b).map(v => [(x.format || digits)(v), ...series.map(s => {
                                                           const p = s.points.find(q => q[0] === v);
                                                           return p ? (y.format || digits)(p[1]) : '';
                                                         })]),
          title));
  new ResizeObserver(draw).observe(holder);
  draw();
  return figure;
}
