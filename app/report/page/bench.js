/* What bench and plan measured and predicted. */
const shapeOf = data =>
    data.m === data.n && data.n === data.k ? whole(data.m) : `${whole(data.m)} × ${whole(data.n)} × ${whole(data.k)}`;

function gemmView(items) {
  const parts = items.map((item, at) => {
    const data = item.data, ran = data.kernels.filter(row => finite(row.gflops)).sort((a, b) => b.gflops - a.gflops);
    const most = Math.max(...ran.map(row => row.gflops), 0), not = data.kernels.filter(row => row.cannot_run);
    const points = ran.filter(row => row.flop_byte > 0);
    const errors = ran.filter(row => row.error > 0);
    return section(
        'gemm' + at, `Kernels: ${shapeOf(data)} of ${data.type}${data.batch > 1 ? `, ${data.batch} at once` : ''}`,
        `On ${data.device}.`,
        bars(
            ran.map((row, i) => ({
                      name: row.kernel,
                      value: row.gflops,
                      colour: seriesColour(i ? 0 : 4),
                      parts: [
                        html('b', {}, speed(row.gflops)), ' ',
                        html('small', {}, row.vendor_ratio ? `${digits(row.vendor_ratio)} of the vendor’s` : '')
                      ],
                      text: speed(row.gflops)
                    })),
            most, false, 'Speed of kernels'),
        not.length > 0 &&
            html('p', {class: 'hint'}, 'Not run: ' + not.map(row => `${row.kernel} (${row.cannot_run})`).join('; ')),
        html(
            'div', {class: 'pair'},
            points.length > 0 &&
                html('div', {}, html('h3', {}, 'Roofline'), plot({
                       title: 'Roofline of kernels',
                       legend: points.length < 12,
                       series: points.map(row => ({name: row.kernel, points: [[row.flop_byte, row.gflops]]})),
                       x: {label: 'flop/byte', log: true, format: sized},
                       y: {label: 'speed', log: true, format: speed}
                     })),
            errors.length > 0 &&
                html('div', {}, html('h3', {}, 'Error, and the bound that the kernel states'), plot({
                       title: 'Errors of kernels',
                       series: [
                         {
                           name: 'error',
                           points: errors.map(
                               row => [row.gflops, row.error, `${row.kernel}: ${row.error.toExponential(1)}`]),
                           line: false
                         },
                         {
                           name: 'bound',
                           points: errors.map(
                               row =>
                                   [row.gflops, row.error_bound,
                                    `${row.kernel}: ${row.error_bound.toExponential(1)}`]),
                           line: false
                         }
                       ],
                       x: {label: 'speed', log: true, format: speed},
                       y: {label: 'of |A||B|', log: true, format: v => v.toExponential(0)}
                     }))));
  });
  const shapes = new Set(items.map(item => shapeOf(item.data)));
  if (shapes.size > 1) {
    const kernels = [...new Set(
        items.flatMap(item => item.data.kernels.filter(row => finite(row.gflops)).map(row => row.kernel)))];
    const edge = data => Math.cbrt(data.m * data.n * data.k);
    parts.unshift(section(
        'shapes', 'Kernels over shapes', 'The edge is that of a cube with as many products.', plot({
          title: 'Speed over shapes',
          series: kernels.map(kernel => ({
                                name: kernel,
                                points: items
                                            .map(item => {
                                              const row = item.data.kernels.find(one => one.kernel === kernel);
                                              return row && finite(row.gflops) ?
                                                  [
                                                    edge(item.data), row.gflops,
                                                    `${kernel}, ${shapeOf(item.data)}: ${speed(row.gflops)}`
                                                  ] :
                                                  null;
                                            })
                                            .filter(p => p)
                                            .sort((a, b) => a[0] - b[0])
                              })),
          x: {label: 'edge', log: true, format: whole},
          y: {label: 'speed', log: true, format: speed},
          height: 360
        })));
  }
  return parts;
}

function memoryView(items) {
  return items.map((item, at) => {
    const data = item.data, groups = [...new Set(data.kernels.map(row => row.group))],
          most = Math.max(...data.kernels.map(row => row.gbs));
    return section(
        'memory-bench' + at, 'Memory',
        `Of ${data.device}, ${whole(data.n)} elements. The mark is what copying reaches: ${
            digits(data.copy_gbs)} GB/s.`,
        groups.map(
            (group, i) =>
                [html('h3', {}, group),
                 bars(
                     data.kernels.filter(row => row.group === group).map(row => ({
                                                                           name: row.kernel,
                                                                           value: row.gbs,
                                                                           title: row.what,
                                                                           colour: seriesColour(i),
                                                                           ticks:
                                                                               [{at: data.copy_gbs, title: 'copy'}],
                                                                           text: digits(row.gbs) + ' GB/s'
                                                                         })),
                     most, true, `Memory kernels: ${group}`)]));
  });
}

function accuracyView(items) {
  return items.map((item, at) => {
    const data = item.data, inputs = [...new Set(data.results.map(row => row.input))],
          kernels = [...new Set(data.results.map(row => row.kernel))];
    const one = input => {
      const of = (kernel, field) =>
          data.results.filter(row => row.input === input && row.kernel === kernel && row[field] > 0)
              .map(row => [row.k, row[field]])
              .sort((a, b) => a[0] - b[0]);
      return html(
          'div', {}, html('h3', {}, input), plot({
            title: `Errors, ${input}`,
            series: kernels
                        .flatMap(
                            (kernel,
                             i) => [{name: kernel, points: of(kernel, 'component_max'), colour: seriesColour(i)}, {
                              name: kernel + ', its bound',
                              points: of(kernel, 'bound'),
                              colour: seriesColour(i),
                              dashed: true,
                              dots: false
                            }])
                        .filter(s => s.points.length),
            x: {label: 'k', log: true, format: whole},
            y: {label: 'error / eps', log: true},
            height: 260
          }));
    };
    return section(
        'accuracy' + at, `Accuracy of ${data.type}`,
        `On ${data.device}: the largest error of ${whole(data.samples)} elements of products of size ${
            whole(data.size)}, in units of rounding (eps ${data.eps.toExponential(1)}).`,
        html('div', {class: 'pair'}, inputs.map(one)));
  });
}

function multiplyView(items) {
  return items.map((item, at) => {
    const data = item.data, alone = data.alone || {};
    const rows = [
      ['this product, best', data.tflops, 'multiply'], ['a rank’s part alone, times the ranks', alone.tflops, 'read'],
      ...(data.peer ? [[data.peer.name, data.peer.tflops, 'write']] : [])
    ].filter(row => row[1] > 0);
    return section(
        'bench-multiply' + at, 'Repeats',
        `Operands in the memory of the ${data.data}, ${data.operands}, ${data.distribution}, on ${data.device}.`,
        html(
            'div', {class: 'pair'},
            html('div', {}, plot({
                   title: 'Seconds of each repeat',
                   series: [
                     {
                       name: 'repeat',
                       points: data.seconds.map((value, i) => [i + 1, value]),
                       line: data.seconds.length > 1
                     },
                     ...data.limit ? [{
                       name: `limit: ${data.limit.lane}`,
                       points: [[1, data.limit.seconds], [Math.max(2, data.seconds.length), data.limit.seconds]],
                       dots: false,
                       dashed: true
                     }] :
                                     []
                   ],
                   x: {
                     label: 'repeat',
                     format: v => Number.isInteger(v) ? String(v) : '',
                     range: [.7, Math.max(2, data.seconds.length) + .3]
                   },
                   y: {label: 'seconds', zero: true, format: seconds}
                 })),
            html(
                'div', {}, html('h3', {}, 'Beside what else was measured'),
                bars(
                    rows.map(
                        ([name, value, lane]) => ({name, value, text: speed(value * 1e3), colour: `var(--${lane})`})),
                    Math.max(...rows.map(row => row[1])), false, 'Speeds'))));
  });
}

/* The counts of plan --scaling as plans of their own: what is said of them. */
function countsOf(data) {
  return (data.scaling || [])
      .filter(at => at.ranks !== data.ranks)
      .map(
          at => ({
            ...data,
            ...at,
            exchange_bytes: null,
            exchange_bound_bytes: null,
            lanes: Object.fromEntries(Object.entries(at.lanes || {}).map(([lane, value]) => [lane, {seconds: value}]))
          }));
}

function planView(items) {
  const byRanks = (a, b) => a.ranks - b.ranks, parts = [];
  const planned = items.map(item => item.data).sort(byRanks);
  const plans = planned.flatMap(data => [data, ...countsOf(data)]).sort(byRanks);
  if (plans.length > 1) {
    const groups = [...new Set(plans.map(data => `${shapeOf(data)} ${data.type}`))];
    const curve = field => groups.map(
        group => ({
          name: group,
          points:
              plans.filter(data => `${shapeOf(data)} ${data.type}` === group).map(data => [data.ranks, data[field]])
        }));
    const lanes = LANES.filter(lane => plans.some(data => data.lanes[lane] && data.lanes[lane].seconds > 0));
    const ticks = [...new Set(plans.map(data => data.ranks))];
    const x = {label: 'GPUs', log: true, format: whole, ticks: ticks.length < 9 ? ticks : null};
    parts.push(section(
        'scaling', 'Scaling, predicted', `On ${plans[0].machine}. A prediction: nothing was run.`,
        html(
            'div', {class: 'pair'},
            html('div', {}, html('h3', {}, 'Seconds'), plot({
                   title: 'Predicted seconds',
                   series: [
                     ...curve('seconds'),
                     ...groups.length === 1 ? [{
                       name: 'ideal',
                       dashed: true,
                       dots: false,
                       colour: 'var(--soft)',
                       points: plans.map(data => [data.ranks, plans[0].seconds * plans[0].ranks / data.ranks])
                     }] :
                                              []
                   ],
                   x,
                   y: {label: 'seconds', log: true, format: seconds}
                 })),
            html('div', {}, html('h3', {}, 'Share of all GPUs’ multiplication rate'), plot({
                   title: 'Predicted efficiency',
                   series: curve('efficiency'),
                   x,
                   y: {label: 'efficiency', zero: true, format: percent}
                 })),
            groups.length === 1 &&
                html('div', {}, html('h3', {}, 'Seconds of each lane'), plot({
                       title: 'Predicted seconds of lanes',
                       series: lanes.map(
                           lane => ({
                             name: lane,
                             colour: `var(--${lane})`,
                             points:
                                 plans.map(data => [data.ranks, data.lanes[lane] ? data.lanes[lane].seconds : null])
                                     .filter(p => p[1] > 0)
                           })),
                       x,
                       y: {label: 'seconds', log: true, format: seconds}
                     })),
            groups.length === 1 && planned.length > 1 &&
                html('div', {}, html('h3', {}, 'Bytes exchanged by the busiest rank'), plot({
                       title: 'Exchanged bytes',
                       series: [
                         {
                           name: 'planned',
                           points: plans.map(data => [data.ranks, data.exchange_bytes]).filter(p => p[1] > 0)
                         },
                         {
                           name: 'fewest of any schedule',
                           points: plans.map(data => [data.ranks, data.exchange_bound_bytes]).filter(p => p[1] > 0),
                           dashed: true
                         }
                       ],
                       x,
                       y: {label: 'bytes', log: true, format: bytes}
                     })))));
  }
  planned.forEach((data, at) => {
    const lanes = LANES.filter(lane => data.lanes[lane] && data.lanes[lane].seconds > 0);
    parts.push(section(
        'plan' + at,
        `Planned: ${shapeOf(data)} of ${data.type} on ${whole(data.ranks)} GPU${data.ranks > 1 ? 's' : ''}`,
        `Predicted ${seconds(data.seconds)}, bounded by ${data.bounded_by}; grid ${data.grid.join(' × ')}, ${
            bytes(data.device_bytes)} of each device, ${bytes(data.host_bytes)} of the host for a rank.`,
        bars(
            lanes.map(lane => ({
                        name: lane,
                        value: data.lanes[lane].seconds,
                        colour: `var(--${lane})`,
                        text: seconds(data.lanes[lane].seconds)
                      })),
            data.seconds, true, 'Predicted seconds of lanes')));
  });
  return parts;
}
