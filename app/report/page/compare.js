/* Several runs: what became slower, and where. Each beside the first. */
function compareView(items) {
  const first = items[0].record,
        lanes = LANES.filter(lane => items.some(item => activeLanes(item.record).includes(lane)));
  const busy = (record, lane) => working(record).length ? busiest(record, lane)[lane + '_seconds'] : 0;
  const delta = (now, before) => {
    const value = now / before - 1;
    return html('span', {class: value > .02 ? 'worse' : value < -.02 ? 'better' : null}, change(value));
  };
  const last = items[items.length - 1].record, more = last.seconds - first.seconds;
  const moved = lanes.map(lane => [lane, busy(last, lane) - busy(first, lane)])
                    .sort((a, b) => (b[1] - a[1]) * Math.sign(more || 1))[0];
  const words = Math.abs(more) < .02 * first.seconds ?
      'The last run took as long as the first, within 2 %.' :
      `The last run took ${digits(100 * Math.abs(more) / first.seconds)} % ${
          more > 0 ? 'longer' : 'less'} than the first` +
          (moved && moved[1] * more > 0 ? `, most of it in ${moved[0]}: ${more > 0 ? '+' : '−'}${
                                              seconds(Math.abs(moved[1]))} on the busiest rank.` :
                                          '.');
  const shapes =
      new Set(items.map(item => [item.record.m, item.record.n, item.record.k, item.record.products].join(' × ')));
  const most =
      Math.max(...items.flatMap(item => [item.record.seconds, ...lanes.map(lane => busy(item.record, lane))]));
  const table = html(
      'div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Runs beside the first'},
      html(
          'table', {id: 'compared'},
          html(
              'thead', {},
              html(
                  'tr', {},
                  ['Run', 'Ranks', 'Time', '', 'Speed', '', 'Limit', 'Bounded by'].map(
                      cell => html('th', {scope: 'col'}, cell)))),
          html(
              'tbody', {},
              items.map((item, at) => html('tr', {}, html('td', {class: 'text'}, `${at + 1}  ${item.name}`), [
                          whole(item.record.rank_count), seconds(item.record.seconds),
                          at ? delta(item.record.seconds, first.seconds) : '', speed(item.record.gflops),
                          at ? change(item.record.gflops / first.gflops - 1) : '', percent(item.record.limit_share),
                          item.record.limit_lane
                        ].map(cell => html('td', {}, cell)))))));
  const lane = name => html(
      'div', {}, html('h3', {}, name === 'run' ? 'the whole run' : name),
      bars(
          items.map((item, at) => {
            const value = name === 'run' ? item.record.seconds : busy(item.record, name),
                  before = name === 'run' ? first.seconds : busy(first, name);
            return {
              name: String(at + 1),
              value,
              colour: name === 'run' ? 'var(--soft)' : `var(--${name})`,
              said: seconds(value),
              parts: [html('b', {}, seconds(value)), ' ', at && before > 0 ? delta(value, before) : '']
            };
          }),
          most, true, `${name}, each run`));
  return [
    html('h1', {}, words),
    shapes.size > 1 &&
        html(
            'p', {class: 'note'},
            `These are products of different shapes (${[...shapes].join('; ')}): times say little, speeds more.`),
    section('compare', 'Runs beside the first', null, table),
    section(
        'compare-lanes', 'Where', 'Seconds of the busiest rank in each lane.',
        html('div', {class: 'pair'}, ['run', ...lanes].map(lane)))
  ];
}
