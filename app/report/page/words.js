'use strict';
/* What all parts of the page share: elements, numbers in words. Texts of files become text nodes alone. */
const page = JSON.parse(document.getElementById('data').textContent);
const LANES = page.lanes;
const finite = value => typeof value === 'number' && Number.isFinite(value);
const styles = getComputedStyle(document.documentElement);
const colour = name => styles.getPropertyValue('--' + name).trim();

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined) continue;
    if (value === false && !name.startsWith('aria-')) continue;
    if (name.startsWith('on'))
      element.addEventListener(name.slice(2), value);
    else if (name === 'style')
      Object.assign(element.style, value);
    else
      element.setAttribute(name, value === true && !name.startsWith('aria-') ? '' : value);
  }
  for (const child of children.flat(9)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}
const html = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
    build(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

/* Three digits that count. */
function digits(value) {
  if (!finite(value)) return '–';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2).replace('e+', 'e');
  if (size >= 100) return value.toFixed(0);
  return String(Number(value.toPrecision(3)));
}
const whole = value => finite(value) ? value.toLocaleString('en').replace(/,/g, '\u202f') : '–';
const sized = value => Math.abs(value) >= 1000 ? whole(value) : digits(value);
const percent = value => finite(value) ? Math.round(100 * value) + ' %' : '–';
const change = value => finite(value) ? (value >= 0 ? '+' : '−') + digits(Math.abs(100 * value)) + ' %' : '–';

function seconds(value) {
  if (!finite(value)) return '–';
  if (value >= 3600) return Math.floor(value / 3600) + ' h ' + Math.floor(value % 3600 / 60) + ' min';
  if (value >= 120) return Math.floor(value / 60) + ' min ' + Math.floor(value % 60) + ' s';
  if (value >= 1) return digits(value) + ' s';
  if (value >= 1e-3) return digits(value * 1e3) + ' ms';
  return value === 0 ? '0 s' : digits(value * 1e6) + ' µs';
}
function scaled(value, units) {
  let at = 0;
  while (at < units.length - 1 && Math.abs(value) >= 1000) {
    value /= 1000;
    at++;
  }
  return finite(value) ? digits(value) + ' ' + units[at] : '–';
}
const bytes = value => scaled(value, ['B', 'kB', 'MB', 'GB', 'TB', 'PB']);
const bandwidth = value => scaled(value, ['B/s', 'kB/s', 'MB/s', 'GB/s', 'TB/s', 'PB/s']);
const speed = gflops =>
    scaled(gflops * 1e9, ['FLOP/s', 'kFLOP/s', 'MFLOP/s', 'GFLOP/s', 'TFLOP/s', 'PFLOP/s', 'EFLOP/s']);
const laneRate = (lane, value) => lane === 'multiply' ? speed(value / 1e9) : bandwidth(value);

const section = (id, title, hint, ...parts) => html(
    'section', {id, 'aria-labelledby': id + '-title'}, html('h2', {id: id + '-title'}, title),
    hint && html('p', {class: 'hint'}, hint), ...parts);

/* Rows of a table as {cells}; the first row is its head. */
function dataTable(head, rows, caption) {
  return html(
      'details', {}, html('summary', {}, 'Numbers'),
      html(
          'div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption},
          html(
              'table', {}, html('caption', {class: 'hidden'}, caption),
              html('thead', {}, html('tr', {}, head.map(cell => html('th', {scope: 'col'}, cell)))),
              html('tbody', {}, rows.map(row => html('tr', {}, row.map(cell => html('td', {}, cell))))))));
}
