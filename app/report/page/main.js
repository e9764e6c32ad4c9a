/* Puts the page together. */
function benchViews(items) {
  const kinds = {gemm: gemmView, memory: memoryView, accuracy: accuracyView, multiply: multiplyView, plan: planView};
  return Object.entries(kinds).flatMap(([kind, view]) => {
    const some = items.filter(item => item.kind === kind);
    return some.length ? view(some) : [];
  });
}

function start() {
  const root = document.getElementById('page'), runs = page.items.filter(item => item.record);
  for (const item of runs)
    if (item.ceilings) Object.assign(item.record, {machine: item.machine, ceilings: item.ceilings});
  const detail = html('div', {id: 'run'});
  const buttons =
      runs.map((item, at) => html('button', {type: 'button', onclick: () => show(at)}, `${at + 1}  ${item.name}`));
  function show(at) {
    buttons.forEach((button, i) => button.setAttribute('aria-pressed', i === at));
    detail.replaceChildren(...runView(runs[at]).flat(9).filter(part => part));
    const compared = root.querySelector('h1');
    if (compared && runs.length > 1)
      detail.querySelectorAll('h1').forEach(
          h1 => h1.replaceWith(
              html('h2', {style: {fontSize: '23px', fontWeight: 500, marginTop: '26px'}}, ...h1.childNodes)));
  }
  const top = html('header', {class: 'top'}, html('b', {}, 'Tessera report'), html('span', {}, page.program));
  root.append(
      top, ...(runs.length > 1 ? compareView(runs) : []).flat(9).filter(part => part),
      ...benchViews(page.items).flat(9).filter(part => part));
  if (runs.length > 1)
    root.append(section(
        'each', 'Each run', null,
        html('div', {class: 'runs', role: 'group', 'aria-label': 'Which run is shown'}, buttons)));
  root.append(detail);
  if (runs.length) show(0);
  if (!root.querySelector('h1')) top.after(html('h1', {class: 'hidden'}, 'Tessera report'));
  const names =
      [...root.querySelectorAll('section[id]')].map(part => [part.id, part.querySelector('h2').textContent]);
  top.append(html(
      'nav', {'aria-label': 'Parts of this page'},
      names.slice(0, 9).map(([id, name]) => html('a', {href: '#' + id}, name))));
}
start();
