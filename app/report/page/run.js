/* One run: the sentence, lanes, limits, memory, what it was run with. */
const working = record => record.ranks.filter(rank => rank.row >= 0);
const busiest = (record, lane) => working(record).reduce(
    (most, rank) => !most || rank[lane + '_seconds'] > most[lane + '_seconds'] ? rank : most, null);
const sum = (list, field) => list.reduce((all, one) => all + (one[field] || 0), 0);
const amount = (rank, lane) => lane === 'multiply' ? rank.flops : rank[lane + '_bytes'];
/* Of a rank: of the machine file where the report has one, else what the plan counted on. */
const expected = (record, lane) => record.ceilings ?
    record.ceilings[lane] :
    1e9 * (record[lane === 'multiply' ? 'expected_multiply_gflops' : `expected_${lane}_GBps`] || 0);
const activeLanes = record => LANES.filter(lane => working(record).some(rank => rank[lane + '_seconds'] > 0));

/* Figures stand out; the words are those of the terminal. */
function emphasised(sentence) {
  const figures = /(\d[\d.]* (?:s|ms|us)\b|\d+ min \d+ s|\d+ h \d+ min|[\d.e+-]+ [GTP]FLOP\/s|\d+ %)/;
  return sentence.replace(/\d{5,}/g, number => whole(Number(number)))
      .replace(/ x /g, ' × ')
      .replace(/ us\b/g, ' µs')
      .split(new RegExp(figures.source.replace('us', 'us|µs')))
      .map((part, at) => at % 2 ? html('b', {}, part) : part);
}

function formula(record) {
  const operation = of =>
      (record['conjugate_' + of]     ? (record['transpose_' + of] ? 'ᴴ' : '*') :
           record['transpose_' + of] ? 'ᵀ' :
                                       '');
  const scale = (re, im) => im ? `(${digits(re)} + ${digits(im)}i) ` :
      re === 1    ? '' :
      re === null ? '' :
                    digits(re) + ' ';
  const matrix = (name, of) => record[of] &&
      html('span', {}, html('br'),
           `${name}  ${record[of]}, ${whole(record[of + '_rows'])} × ${whole(record[of + '_cols'])} ${
               record[of + '_type']}`);
  return html(
      'p', {class: 'formula'},
      html(
          'b', {},
          'C = ' + scale(record.alpha, record.alpha_imag) + `A${operation('a')} B${operation('b')}` +
              (record.c0 ? ' + ' + scale(record.beta, record.beta_imag) + 'C₀' : '')),
      record.products > 1 ? `, ${whole(record.products)} products` : '', matrix('A', 'a'), matrix('B', 'b'),
      matrix('C₀', 'c0'), matrix('C', 'c'));
}

/* What the checks found: of files where they were read again, else of products where they were made. */
function checkFact(record) {
  const verdict = text => (text || 'not run').split(/[:,]/)[0];
  const one = text => verdict(text) === 'PASSED' ? '✓ passed' : verdict(text);
  if (verdict(record.check) !== 'not run')
    return [one(record.check), 'of the product'];
  if (verdict(record.product_check) !== 'not run')
    return [one(record.product_check), 'of products where they were made'];
  return ['not run', '--verify checks the product'];
}

function facts(record, bound) {
  const [check, checked] = checkFact(record);
  const one = (name, value, small) =>
      html('div', {}, html('dt', {}, name), html('dd', {}, value, html('small', {}, small)));
  return html(
      'dl', {class: 'facts'},
      one('Time', seconds(record.seconds),
          record.setup_seconds > 0 ? `after ${seconds(record.setup_seconds)} of start-up` :
                                     'first read to last byte'),
      one('Speed', speed(record.gflops), `${speed(record.gflops / Math.max(1, working(record).length))} a rank`),
      one('Share of the limit', percent(record.limit_share),
          record.limit_share >= .5 ? bound : 'no lane alone held it up'),
      one('Check', check, record.overflows > 0 ? `${whole(record.overflows)} elements overflowed` : checked));
}

function laneBars(record) {
  const rows = activeLanes(record).map(lane => {
    const most = busiest(record, lane), busy = most[lane + '_seconds'], all = working(record);
    const mean = sum(all, lane + '_seconds') / all.length, rate = amount(most, lane) / busy,
          ceiling = expected(record, lane);
    const least = ceiling > 0 ? amount(most, lane) / ceiling : 0;
    return {
      name: lane,
      value: busy,
      colour: `var(--${lane})`,
      title: `rank ${most.rank}, ${percent(busy / record.seconds)} of the run`,
      said: `rank ${most.rank} busy for ${seconds(busy)}, ${percent(busy / record.seconds)} of the run, at ${
          laneRate(lane, rate)}`,
      ticks: [
        ...all.length > 1 ? [{at: mean, title: `mean of all ranks: ${seconds(mean)}`}] : [],
        ...least > 0 && least <= record.seconds ?
            [{at: least, ring: true, title: `at the ceiling: ${seconds(least)}`}] :
            []
      ],
      parts: [
        html('b', {}, seconds(busy)), ' ',
        html(
            'small', {},
            percent(busy / record.seconds) + ', ' + laneRate(lane, rate) +
                (ceiling > 0 ? ` of ${laneRate(lane, ceiling)}` : ''))
      ]
    };
  });
  const hasCeiling = activeLanes(record).some(lane => expected(record, lane) > 0);
  return section(
      'lanes', 'Lanes', 'All lanes run at the same time. A bar is the busiest rank; its track is the whole run.',
      html(
          'ul', {class: 'legend'},
          working(record).length > 1 &&
              html(
                  'li', {}, html('span', {class: 'swatch', style: {width: '2px', background: 'var(--ink)'}}),
                  'mean of the ranks'),
          hasCeiling &&
              html(
                  'li', {},
                  html('span', {class: 'swatch', style: {borderRadius: '50%', border: '2px solid var(--ink)'}}),
                  `what its bytes and flops take at the ceiling: ${
                      record.machine             ? 'the rates of ' + record.machine :
                          record.kernel_measured ? 'the kernel’s measured, the others’ typical rates' :
                                                   'typical rates'}`)),
      bars(rows, record.seconds, false, 'Busy seconds of each lane'));
}

function predictedBeside(record) {
  if (!(record.predicted_seconds > 0))
    return section('predicted', 'Predicted beside measured', 'This record does not say what was predicted.');
  const lines = [
    ...activeLanes(record).map(
        lane => [lane, record[`predicted_${lane}_seconds`], busiest(record, lane)[lane + '_seconds']]),
    ['the run', record.predicted_seconds, record.seconds]
  ];
  const most = Math.max(...lines.flatMap(line => line.slice(1)));
  return section(
      'predicted', 'Predicted beside measured',
      'Of each lane’s busiest rank. The plan counts on rates of its own; the ring is its prediction.',
      bars(
          lines.map(
              ([name, predicted, measured]) => ({
                name,
                value: measured,
                colour: name === 'the run' ? 'var(--soft)' : `var(--${name})`,
                ticks: [{at: predicted, ring: true, title: 'predicted ' + seconds(predicted)}],
                said: `${seconds(measured)} measured, ${seconds(predicted)} predicted`,
                parts: [html('b', {}, seconds(measured)), ' ', html('small', {}, `${seconds(predicted)} predicted`)]
              })),
          most, true, 'Predicted and measured seconds'));
}

function roofline(record) {
  const all = working(record), flops = sum(all, 'flops'), moved = sum(all, 'multiply_bytes'),
        busy = sum(all, 'kernel_seconds');
  if (!(flops > 0 && moved > 0 && busy > 0)) return null;
  const x = flops / moved, y = flops / busy / 1e9, roof = expected(record, 'multiply') / 1e9,
        memory = expected(record, 'pack') / 1e9;
  const files = sum(all, 'read_bytes') + sum(all, 'write_bytes'),
        lanes = sum(all, 'read_seconds') + sum(all, 'write_seconds');
  const runX = files > 0 ? flops / files : x, runY = record.gflops / all.length;
  const low = Math.min(x, runX) / 12, high = Math.max(x, runX, memory > 0 ? roof / memory : 0) * 12;
  const top = Math.max(roof, y, runY || 0) * 3, under = (rate, limit) => [[low, low * rate], [limit / rate, limit]];
  const series = [
    {
      name: 'the kernel',
      points: [[x, y, `${digits(x)} flop/byte, ${speed(y)}`]],
      size: 7,
      colour: 'var(--multiply)',
      label: `${record.kernel} ${speed(y)}`,
      strong: true
    },
    {
      name: 'the whole run, by bytes of files',
      points: [[runX, runY, `${digits(runX)} flop/byte of files, ${speed(runY)} a rank`]],
      size: 6,
      colour: 'var(--read)'
    }
  ];
  if (roof > 0)
    series.push({
      name: record.machine ? `a GPU’s speed by ${record.machine}` :
                             `${record.kernel_measured ? 'measured' : 'typical'} speed of such a device`,
      points: [[memory > 0 ? roof / memory : low, roof], [high, roof]],
      dots: false,
      colour: 'var(--soft)'
    });
  if (roof > 0 && memory > 0)
    series.push({
      name: `device memory, ${bandwidth(memory * 1e9)}${record.machine ? ' by ' + record.machine : ''}`,
      points: under(memory, roof),
      dots: false,
      colour: 'var(--pack)'
    });
  if (lanes > 0)
    series.push({
      name: `files as this run read and wrote them, ${bandwidth(files / lanes)}`,
      points: under(files / lanes / 1e9, Math.max(roof, y)),
      dots: false,
      dashed: true,
      colour: 'var(--write)'
    });
  const least =
      Math.min(
          y, ...series.flatMap(s => s.dots === false ? [] : s.points.map(p => p[1])).filter(value => value > 0)) /
      6;
  return section(
      'roofline', 'Roofline',
      'A rank’s speed over flops for each byte. Left of a ridge bytes bound it, right of it the device.', plot({
        title: 'Roofline',
        series,
        x: {label: 'flop/byte', log: true, range: [low, high], format: sized},
        y: {label: 'of a rank', log: true, range: [least, top], format: speed},
        height: 330,
        say: `Roofline: the kernel ${record.kernel} at ${digits(x)} flop/byte reaches ${speed(y)} on a rank`
      }));
}

function memoryBars(record) {
  const most = field => Math.max(0, ...record.ranks.map(rank => rank[field] || 0));
  const rows = [
    ['device, planned', record.planned_device_bytes, 'upload'], ['device, allocated', most('device_bytes'), 'read'],
    ['host, planned', record.planned_host_bytes, 'download'],
    ['host, peak of the process', most('host_peak_bytes'), 'pack']
  ].filter(row => row[1] > 0);
  if (!rows.length) return section('memory', 'Memory', 'This record does not say what memory was taken.');
  return section(
      'memory', 'Memory of a rank',
      'Planned before the run, and the most that a rank took. The peak holds libraries and code, too.',
      bars(
          rows.map(([name, value, lane]) => ({name, value, text: bytes(value), colour: `var(--${lane})`})),
          Math.max(...rows.map(row => row[1])), true, 'Memory of a rank'));
}

function startup(record) {
  const parts = ['mpi', 'device', 'transport', 'plan', 'allocation', 'files'].map(
      part => [part, record[`setup_${part}_seconds`]]);
  if (!(record.setup_seconds > 0)) return null;
  return section(
      'startup', 'Start-up',
      'From the beginning of the program to the first read: what rank 0 waited for, one after the other.',
      bars(
          parts.map(([name, value]) => ({name, value, text: seconds(value), colour: 'var(--soft)'})),
          record.setup_seconds, true, 'Parts of the start-up'));
}

/* "blas", or "split3 75 %, simt 25 %" */
function kernelShares(record) {
  const shares =
      (record.kernels || '').split(', ').map(share => share.split(' ')).filter(share => share.length === 2);
  return shares.length > 1 ? shares.map(([name, share]) => `${name} ${percent(Number(share))}`).join(', ') :
                             record.kernel;
}

function about(record, item) {
  const lines = [
    ['Began', record.started],
    [
      'Ranks',
      `${record.rank_count}, grid ${record.grid_m} × ${record.grid_n} × ${record.grid_k}` +
          (record.teams > 1 ? `, ${record.teams} teams` : '')
    ],
    ['Kernel', kernelShares(record)],
    ['Accuracy', `${record.accuracy}, operands as ${record.input}, sums in ${record.type}`],
    [
      'Redistribution',
      record.redistribute_seconds > 0 &&
          `${seconds(record.redistribute_seconds)} of exchange, ${
              bytes(record.redistribute_bytes)} of matrices in memory from rank to rank`
    ],
    ['Transport', record.transport], ['Schedule', record.schedule], ['Files', record.io],
    ['Super-blocks', `${record.super_blocks_m} × ${record.super_blocks_n}, steps of ${whole(record.panel)} over k`],
    ['Products', record.product_check], ['Check', record.check], ['Versions', record.versions],
    ['Record', `${item.name}, format ${record.format}`]
  ];
  const command = html('pre', {id: 'command'}, record.command || 'not said');
  return section(
      'about', 'What ran, and how to run it again', null, command,
      html(
          'dl', {class: 'about'},
          lines.filter(line => line[1]).map(line => [html('dt', {}, line[0]), html('dd', {}, line[1])])));
}

function runView(item) {
  const record = item.record;
  const warnings = (record.warnings || '').split('\n').filter(line => line);
  const stragglers = record.slowest_behind_seconds > 0 && working(record).length > 1 ?
      `The slowest: ${record.slowest_lane} of rank ${record.slowest_rank}, ${
          seconds(record.slowest_behind_seconds)} above the mean of all ranks.` :
      '';
  return [
    html('h1', {}, emphasised(item.sentence)), formula(record), facts(record, item.bound),
    warnings.map(line => html('p', {class: 'note', role: 'note'}, 'Warning: ' + line)),
    item.lacks.length > 0 &&
        html(
            'p', {class: 'note', role: 'note', id: 'lacks'},
            'This record does not say: ' + item.lacks.join('; ') + '.'),
    timelineView(item), laneBars(record), html('div', {class: 'pair'}, predictedBeside(record), memoryBars(record)),
    html('div', {class: 'pair'}, roofline(record), startup(record)), ranksView(record, stragglers),
    about(record, item)
  ];
}
