/* The table of ranks: sorted by any column; many ranks are folded by node. */
const RANKS_FLAT = 64;

function rankColumns(record) {
  const number = (name, title, get, show) => ({name, title, get, show});
  return [
    number('rank', 'Rank', rank => rank.rank, String),
    {name: 'host', title: 'Host', get: rank => rank.host, show: String, text: true},
    {name: 'device', title: 'Device', get: rank => rank.device, show: String, text: true},
    number(
        'place', 'Place', rank => rank.row < 0 ? -1 : rank.row * 1e8 + rank.col * 1e4 + rank.depth,
        (value, rank) => rank.row < 0 ? 'idle' : `${rank.row},${rank.col},${rank.depth}`),
    number('wall', 'First to last step', rank => rank.wall_seconds, seconds),
    number('speed', 'Speed', rank => rank.wall_seconds > 0 ? rank.flops / rank.wall_seconds / 1e9 : 0, speed),
    ...activeLanes(record).flatMap(
        lane =>
            [number(lane, lane, rank => rank[lane + '_seconds'], seconds),
             number(
                 lane + '-rate', '', rank => amount(rank, lane) / rank[lane + '_seconds'] || 0,
                 value => laneRate(lane, value))]),
    number('tiles', 'Tiles', rank => rank.tiles, whole),
    number('memory', 'Host peak', rank => rank.host_peak_bytes, bytes)
  ];
}

function ranksView(record, hint) {
  if (!record.ranks.length) return null;
  const columns = rankColumns(record), open = new Set();
  const hosts = new Map();
  for (const rank of record.ranks) hosts.set(rank.host, [...hosts.get(rank.host) || [], rank]);
  const folds = record.ranks.length > RANKS_FLAT && hosts.size > 1;
  let by = columns[0], up = true;
  const body = html('tbody', {});
  const heads = columns.map(
      column => html(
          'th', {scope: 'col', class: column.text ? 'text' : null},
          column.title ?
              html(
                  'button', {type: 'button', 'data-column': column.name, onclick: () => sort(column)}, column.title) :
              html('span', {class: 'hidden'}, 'rate')));
  const order = (a, b) => {
    const x = by.get(a), y = by.get(b), less = typeof x === 'string' ? x.localeCompare(y) : x - y;
    return (up ? less : -less) || a.rank - b.rank;
  };
  const line = (rank, first) => html(
      'tr', {'data-rank': rank.rank},
      columns.map(
          (column, at) => html(
              'td', {class: column.text ? 'text' : null},
              at === 0 && first ? first : column.show(column.get(rank), rank))));
  /* A node's line: the mean of its ranks, and the slowest one's time. */
  function nodeLine([host, ranks]) {
    const mean = {...ranks[0], rank: ranks[0].rank, row: 0, col: 0, depth: 0, device: ranks[0].device.split(' #')[0]};
    for (const field of Object.keys(mean))
      if (finite(mean[field]) && /seconds|bytes|flops/.test(field)) mean[field] = sum(ranks, field) / ranks.length;
    mean.wall_seconds = Math.max(...ranks.map(rank => rank.wall_seconds));
    mean.tiles = sum(ranks, 'tiles');
    mean.first = ranks[0].rank;
    const toggle = html(
        'button', {
          type: 'button',
          'aria-expanded': open.has(host),
          onclick: () => {
            open.has(host) ? open.delete(host) : open.add(host);
            fill();
          }
        },
        `${open.has(host) ? '▾' : '▸'} ${ranks.length} ranks`);
    return {
      mean,
      row: () => {
        const row = line(mean, toggle);
        row.className = 'node';
        row.querySelectorAll('td')[3].textContent = '';
        return row;
      }
    };
  }
  function fill() {
    columns.forEach(
        (column, at) =>
            heads[at].setAttribute('aria-sort', column === by ? up ? 'ascending' : 'descending' : 'none'));
    if (!folds) return body.replaceChildren(...[...record.ranks].sort(order).map(rank => line(rank)));
    const named = [...working(record)].sort((a, b) => b.wall_seconds - a.wall_seconds);
    const three = [
      ['slowest', named[0]], ['median', named[named.length >> 1]], ['fastest', named[named.length - 1]]
    ].map(([word, rank]) => line(rank, `${rank.rank} (${word})`));
    const nodes = [...hosts].map(entry => ({...nodeLine(entry), entry})).sort((a, b) => order(a.mean, b.mean));
    body.replaceChildren(
        ...three,
        ...nodes.flatMap(
            node =>
                [node.row(),
                 ...open.has(node.entry[0]) ? [...node.entry[1]].sort(order).map(rank => line(rank)) : []]));
  }
  function sort(column) {
    up = column === by ? !up : !!column.text || column.name === 'rank' || column.name === 'place';
    by = column;
    fill();
  }
  fill();
  return section(
      'ranks', 'Ranks',
      `${hint} ${
          folds ?
              `${record.ranks.length} ranks of ${
                  hosts.size} nodes: a line a node, the mean of its ranks and the longest time; a click opens it.` :
              'A click on a heading sorts.'}`
          .trim(),
      html(
          'div', {
            class: 'scroll' + (record.ranks.length > 24 ? ' tall' : ''),
            tabindex: 0,
            role: 'region',
            'aria-label': 'Table of ranks'
          },
          html(
              'table', {}, html('caption', {class: 'hidden'}, 'Ranks of the run'),
              html('thead', {}, html('tr', {}, heads)), body)));
}
