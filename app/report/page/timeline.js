/* The timeline of lanes and ranks on a canvas: zoomed by wheel, keys and drag, told step by step. Ranks fold by node.
 */
const [RANK, LANE, LABEL, BEGIN, TOOK, BYTES, FLOPS, STEPS, BUSY, TILE] = [...Array(10).keys()];
const ROW = 13, GAP = 3, HEAD = 24, AXIS = 22;

/* Ranks with their events by lane, below the node they run on. */
function traceNodes(trace) {
  const nodes = new Map();
  const slow = [...trace.rows].sort((a, b) => b.end - a.end);
  const words = trace.ranks > trace.rows.length && slow.length === 3 ?
      new Map(slow.map((row, at) => [row.rank, ['slowest', 'median', 'fastest'][at]])) :
      new Map();
  const ranks = new Map(trace.rows.map(row => {
    const match = /^rank \d+ on (.*?): (.*)$/.exec(row.name) || [null, 'ranks', ''];
    const rank = {rank: row.rank, host: match[1], device: match[2], word: words.get(row.rank), lanes: new Map()};
    nodes.set(rank.host, [...nodes.get(rank.host) || [], rank]);
    return [row.rank, rank];
  }));
  for (const event of trace.events) {
    const rank = ranks.get(event[RANK]);
    if (!rank) continue;
    if (!rank.lanes.has(event[LANE])) rank.lanes.set(event[LANE], []);
    rank.lanes.get(event[LANE]).push(event);
  }
  for (const rank of ranks.values())
    for (const events of rank.lanes.values()) events.sort((a, b) => a[BEGIN] - b[BEGIN]);
  const made = [...nodes].map(([host, list]) => ({host, ranks: list}));
  return words.size ? slow.map(row => ({host: ranks.get(row.rank).host, ranks: [ranks.get(row.rank)]})) : made;
}

function tell(trace, event) {
  const lane = LANES[event[LANE]], took = event[TOOK] * 1e-6,
        busy = (event[STEPS] > 1 ? event[BUSY] : event[TOOK]) * 1e-6;
  const tile = event.length > TILE ?
      ` · rows ${whole(event[TILE])} to ${whole(event[TILE] + event[TILE + 2] - 1)}, columns ${
          whole(event[TILE + 1])} to ${whole(event[TILE + 1] + event[TILE + 3] - 1)}` :
      '';
  const rate = event[FLOPS] > 0    ? speed(event[FLOPS] / busy / 1e9) :
      event[BYTES] > 0 && busy > 0 ? `${digits(event[BYTES] / busy / 1e9)} GB/s` :
                                     '';
  return [
    html('b', {}, `${trace.labels[event[LABEL]]}${event[STEPS] > 1 ? ` and others, ${event[STEPS]} steps` : ''}`),
    ` · ${lane} lane of rank ${event[RANK]} · at ${seconds(event[BEGIN] * 1e-6)} for ${seconds(took)}${
        event[STEPS] > 1 ? `, busy ${seconds(busy)}` : ''}` +
        ` · ${bytes(event[BYTES])}${rate ? ', ' + rate : ''}${tile}`
  ];
}

function timelineView(item) {
  const trace = page.trace;
  const owner = page.items.filter(one => one.record && one.record.command === (trace && trace.command))[0] ||
      page.items.filter(one => one.record)[0];
  if (!trace || item !== owner) {
    return section(
        'timeline', 'Timeline', null,
        html(
            'p', {class: 'hint'},
            'There is none of this run. multiply --report writes a page that has one, multiply --trace a file for report --trace.'));
  }
  const nodes = traceNodes(trace), total = Math.max(trace.end, 1e-3), open = new Set();
  if (trace.rows.length <= 8 || trace.ranks > trace.rows.length) nodes.forEach(node => open.add(node.host));
  const foldable = nodes.some(node => node.ranks.length > 1);
  let from = 0, to = total, rows = [], selected = null, drag = null, gutter = 84;
  const about = `Timeline of ${trace.steps} steps of ${trace.ranks} ranks over ${seconds(total * 1e-6)}. ` +
      'Plus and minus zoom, left and right move, up and down change the lane, comma and full stop the step.';
  const canvas = html(
      'canvas',
      {tabindex: 0, role: 'application', 'aria-roledescription': 'timeline', id: 'time', 'aria-label': about});
  const told = html('p', {class: 'told', 'aria-live': 'polite', id: 'told'}, 'Point at a step to hear of it.');
  const folds = html('div', {class: 'folds'});
  const holder = html('div', {class: 'time'}, canvas, folds);

  function layOut() {
    rows = [];
    let y = AXIS;
    folds.replaceChildren();
    const laneRows = (ranks, host) => {
      const lanes = [...new Set(ranks.flatMap(rank => [...rank.lanes.keys()]))].sort((a, b) => a - b);
      for (const lane of lanes) {
        rows.push({y, lane, host, lists: ranks.map(rank => rank.lanes.get(lane)).filter(list => list)});
        y += ROW + GAP;
      }
    };
    for (const node of nodes) {
      const folded = foldable && !open.has(node.host), top = y;
      if (foldable) {
        const word = `${folded ? '▸' : '▾'} ${node.host}, ${node.ranks.length} rank${
            node.ranks.length > 1 ? 's' : ''}${folded ? ' folded' : ''}`;
        folds.append(html(
            'button', {
              type: 'button',
              'aria-expanded': !folded,
              style: {top: top + 'px'},
              onclick: () => {
                folded ? open.add(node.host) : open.delete(node.host);
                layOut();
                const again = folds.children[nodes.indexOf(node)];
                if (again) again.focus();
              }
            },
            word));
        y += HEAD;
      }
      if (folded) laneRows(node.ranks, node.host);
      for (const rank of folded ? [] : node.ranks) {
        rows.push({
          y,
          title: `rank ${rank.rank}${rank.word ? ', the ' + rank.word : ''}${rank.device ? ' · ' + rank.device : ''}${
              foldable ? '' : ' · ' + rank.host}`
        });
        y += HEAD - 4;
        laneRows([rank], node.host);
        y += 4;
      }
      y += 6;
    }
    canvas.style.height = y + 'px';
    draw();
  }

  function draw() {
    const scale = window.devicePixelRatio || 1, width = holder.clientWidth || 600,
          height = parseFloat(canvas.style.height);
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
    }
    gutter = width < 500 ? 66 : 84;
    const pen = canvas.getContext('2d'), x = t => gutter + (t - from) / (to - from) * (width - gutter);
    const ink = colour('ink'), soft = colour('soft'), line = colour('line'), track = colour('track');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    pen.font = '12px ' + getComputedStyle(document.body).fontFamily;
    pen.textBaseline = 'middle';
    for (const t of niceTicks(from, to, false, width < 500 ? 3 : 8)) {
      pen.fillStyle = line;
      pen.fillRect(x(t), AXIS - 5, 1, height - AXIS + 5);
      pen.fillStyle = soft;
      pen.textAlign = x(t) > width - 30 ? 'right' : x(t) < gutter + 20 ? 'left' : 'center';
      pen.fillText(seconds(t * 1e-6), x(t), 8);
    }
    pen.textAlign = 'left';
    for (const row of rows) {
      if (row.title) {
        pen.fillStyle = ink;
        pen.font = '600 12px ' + getComputedStyle(document.body).fontFamily;
        pen.fillText(row.title, foldable ? 14 : 0, row.y + 11);
        pen.font = '12px ' + getComputedStyle(document.body).fontFamily;
        continue;
      }
      pen.fillStyle = track;
      pen.globalAlpha = .55;
      pen.fillRect(gutter, row.y, width - gutter, ROW);
      pen.globalAlpha = 1;
      pen.fillStyle = soft;
      pen.fillText(LANES[row.lane], foldable ? 14 : 0, row.y + ROW / 2 + .5);
      pen.fillStyle = colour(LANES[row.lane]);
      for (const list of row.lists) {
        for (const event of list) {
          const end = event[BEGIN] + event[TOOK];
          if (end < from || event[BEGIN] > to) continue;
          const left = Math.max(gutter, x(event[BEGIN])), right = Math.min(width, x(end));
          const density = event[STEPS] > 1 && event[TOOK] > 0 ? Math.min(1, event[BUSY] / event[TOOK]) : 1;
          pen.globalAlpha = Math.max(.16, density) * (row.lists.length > 1 ? Math.max(.12, 1 / row.lists.length) : 1);
          pen.fillRect(left, row.y, Math.max(right - left - (right - left > 4 ? .75 : 0), .7), ROW);
        }
      }
      pen.globalAlpha = 1;
    }
    if (selected) {
      const left = Math.max(gutter, x(selected.event[BEGIN])),
            right = x(selected.event[BEGIN] + selected.event[TOOK]);
      pen.strokeStyle = ink;
      pen.lineWidth = 2;
      pen.strokeRect(left - 1, selected.row.y - 1, Math.max(3, right - left) + 1, ROW + 2);
    }
    if (drag && drag.now !== undefined) {
      pen.fillStyle = colour('accent');
      pen.globalAlpha = .18;
      pen.fillRect(Math.min(drag.x, drag.now), AXIS, Math.abs(drag.now - drag.x), height);
      pen.globalAlpha = 1;
    }
    canvas.dataset.from = from;
    canvas.dataset.to = to;
    canvas.dataset.rows = rows.filter(row => row.lists).length;
  }

  const timeAt = x => from + (x - gutter) / (canvas.clientWidth - gutter) * (to - from);
  function show(low, high) {
    const width = Math.min(total, Math.max(high - low, total * 1e-6, .01));
    from = Math.max(0, Math.min(low, total - width));
    to = from + width;
    draw();
  }
  function zoom(factor, at) {
    const middle = at === undefined ? (from + to) / 2 : at;
    show(middle - (middle - from) * factor, middle + (to - middle) * factor);
  }
  function choose(row, event) {
    selected = event ? {row, event} : null;
    if (event) told.replaceChildren(...tell(trace, event));
    draw();
  }
  function find(x, y) {
    const row = rows.find(one => one.lists && y >= one.y - GAP / 2 && y < one.y + ROW + GAP / 2);
    const t = timeAt(x), slack = (to - from) / canvas.clientWidth * 2;
    if (!row || x < gutter) return null;
    let best = null;
    for (const list of row.lists)
      for (const event of list) {
        if (event[BEGIN] - slack <= t && event[BEGIN] + event[TOOK] + slack >= t &&
            (!best || event[TOOK] < best[TOOK]))
          best = event;
      }
    return best && {row, event: best};
  }
  const spot = e => [e.clientX - canvas.getBoundingClientRect().left, e.clientY - canvas.getBoundingClientRect().top];
  canvas.addEventListener('wheel', e => {
    if (document.activeElement !== canvas && !e.ctrlKey) return; /* the page scrolls until the timeline is clicked */
    e.preventDefault();
    if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      const by = (e.deltaX || e.deltaY) / canvas.clientWidth * (to - from);
      show(from + by, to + by);
    } else
      zoom(Math.exp(Math.max(-100, Math.min(100, e.deltaY)) * .004), timeAt(spot(e)[0]));
  }, {passive: false});
  canvas.addEventListener('pointerdown', e => {
    if (e.button !== 0) return;
    canvas.focus({preventScroll: true});
    drag = {x: spot(e)[0]};
    canvas.setPointerCapture(e.pointerId);
  });
  canvas.addEventListener('pointermove', e => {
    const [x, y] = spot(e);
    if (drag && Math.abs(x - drag.x) > 4) {
      drag.now = Math.max(gutter, x);
      return draw();
    }
    const hit = find(x, y);
    if (hit && (!selected || hit.event !== selected.event)) choose(hit.row, hit.event);
  });
  canvas.addEventListener('pointerup', () => {
    const done = drag;
    drag = null;
    if (done && done.now !== undefined)
      show(...[timeAt(Math.max(gutter, done.x)), timeAt(done.now)].sort((a, b) => a - b));
  });
  canvas.addEventListener('pointercancel', () => {
    drag = null;
    draw();
  });
  canvas.addEventListener('dblclick', () => show(0, total));
  function step(by) {
    const laneRowsOnly = rows.filter(row => row.lists && row.lists.length);
    if (!laneRowsOnly.length) return;
    const row = selected && laneRowsOnly.includes(selected.row) ? selected.row : laneRowsOnly[0];
    const list = row.lists.flat().sort((a, b) => a[BEGIN] - b[BEGIN]),
          at = selected && selected.row === row ? list.indexOf(selected.event) + by : 0;
    const event = list[Math.max(0, Math.min(list.length - 1, at))];
    if (event[BEGIN] < from || event[BEGIN] > to)
      show(event[BEGIN] - (to - from) / 2, event[BEGIN] + (to - from) / 2);
    choose(row, event);
  }
  function changeRow(by) {
    const some = rows.filter(row => row.lists && row.lists.length), at = selected ? some.indexOf(selected.row) : -1;
    const row = some[Math.max(0, Math.min(some.length - 1, at + by))], t = selected ? selected.event[BEGIN] : from;
    const list = row.lists.flat();
    choose(
        row,
        list.reduce((best, event) => Math.abs(event[BEGIN] - t) < Math.abs(best[BEGIN] - t) ? event : best, list[0]));
  }
  const keys = {
    '+': () => zoom(.6),
    '=': () => zoom(.6),
    '-': () => zoom(1 / .6),
    '0': () => show(0, total),
    Home: () => show(0, to - from),
    End: () => show(total - (to - from), total),
    ArrowLeft: () => show(from - (to - from) / 5, to - (to - from) / 5),
    ArrowRight: () => show(from + (to - from) / 5, to + (to - from) / 5),
    ArrowUp: () => changeRow(-1),
    ArrowDown: () => changeRow(1),
    ',': () => step(-1),
    '.': () => step(1)
  };
  canvas.addEventListener('keydown', e => {
    if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey) return;
    e.preventDefault();
    keys[e.key]();
  });
  new ResizeObserver(draw).observe(holder);
  for (const media of ['(prefers-color-scheme: dark)', 'print'])
    window.matchMedia(media).addEventListener('change', draw);
  const button = (text, label, act) => html('button', {type: 'button', 'aria-label': label, onclick: act}, text);
  const present = [...new Set(trace.events.map(event => event[LANE]))].sort((a, b) => a - b);
  const joined = trace.events.some(event => event[STEPS] > 1);
  const view = section(
      'timeline', 'Timeline',
      `${whole(trace.steps)} steps of ${whole(trace.ranks)} rank${trace.ranks > 1 ? 's' : ''}.${
          trace.ranks > trace.rows.length ? ` Shown are the slowest, the median and the fastest.` : ''}${
          joined ?
              ' Steps that follow each other closely are joined.' :
              ''} Click, then zoom with the wheel or + and −; drag over a part to see it; a double click shows all.`,
      html(
          'div', {class: 'tools'}, button('+', 'Zoom in', () => zoom(.6)),
          button('−', 'Zoom out', () => zoom(1 / .6)), button('All', 'Show all', () => show(0, total)),
          html(
              'ul', {class: 'legend'},
              present.map(
                  lane => html(
                      'li', {}, html('span', {class: 'swatch', style: {background: `var(--${LANES[lane]})`}}),
                      LANES[lane])))),
      item.record && trace.command !== item.record.command &&
          html('p', {class: 'note'}, `The trace is of another command: ${trace.command || 'unknown'}`),
      holder, told);
  layOut();
  requestAnimationFrame(draw);
  return view;
}
