// The shards of a cluster: a cell for each, in the server that has it.

import { element, facts, level, list, say, show } from './elements.js';
import * as words from './words.js';

const $ = (id) => document.getElementById(id);

const shades = 6;

let seen = false; // somebody looks at the section
let asking = false;
let asked = -Infinity;
let visit = 0; // what was asked before somebody left is not for the next
let known = null; // the last answer
let by = 'size';
let chosen = null; // the cell that is looked at

new IntersectionObserver((entries) => { seen = entries.at(-1).isIntersecting; }).observe($('shards'));
for (const input of document.querySelectorAll('[name=shade]')) {
  input.addEventListener('change', () => { by = input.value; if (known) draw(); });
}

addEventListener('resize', () => point(null)); // it would be elsewhere

// shards asks for them when it is time, while they are on the screen. there says whether
// the server knows of any.
export async function shards(there, ask) {
  show($('shards'), there);
  show($('shards-link'), there);
  if (!there || !seen || asking || (known?.known && performance.now() - asked < 1000 * known.every_seconds)) return;
  asking = true;
  asked = performance.now();
  const mine = visit;
  try {
    const answer = await ask('console/shards');
    if (mine === visit) {
      known = answer;
      draw();
    }
  } catch (error) {
    if (mine === visit) say($('shard-note'), error.message);
  }
  asking = false;
}

// forget drops what was shown: whoever looks may not see it any more.
export function forget() {
  known = null;
  visit++;
  point(null);
  for (const id of ['shard-servers', 'move-rows']) $(id).replaceChildren();
  $('shard-note').textContent = '';
}

function draw() {
  const moving = new Map(known.moves.flatMap((m) => m.shards.map((n) => [n, m])));
  const value = by === 'size' ? ([, bytes]) => bytes : ([, , rate]) => rate;
  const all = known.servers.flatMap((s) => s.shards);
  const most = all.reduce((high, s) => Math.max(high, value(s)), 0);
  document.documentElement.toggleAttribute('data-many-shards', all.length > 1500);
  const sums = known.servers.map((s) => s.shards.reduce((sum, one) => sum + Math.max(value(one), 0), 0));
  const highest = Math.max(...sums);
  list($('shard-servers'), known.servers.map((s, i) => ({ ...s, share: highest > 0 ? sums[i] / highest : 0 })), (s) => s.name, serverBox,
    (box, s) => update(box, s, (one) => (most > 0 && value(one) >= 0 ? Math.min(Math.floor(value(one) / most * shades), shades - 1) : 0), moving));
  const unknown = by === 'rate' && all.every((s) => s[2] < 0);
  say($('shade-most'), unknown ? 'not known yet' : by === 'size' ? words.bytes(most) : words.rate(most) + ' rows/s');
  moves();
  const old = known.known ? `asked ${words.past(known.age_seconds)}` : 'asking the servers';
  say($('shard-note'), [old, known.problem, known.servers.some((s) => s.problem) ? '' : known.missing].filter(Boolean).join('; '));
  if (chosen && !chosen.isConnected) point(null);
  if (chosen) tell(chosen);
}

function serverBox(s) {
  const cells = element('div', 'cells');
  cells.setAttribute('role', 'listbox');
  cells.setAttribute('aria-label', 'shards of ' + s.name);
  cells.tabIndex = 0;
  const bar = element('div', 'bar', element('i'));
  bar.setAttribute('role', 'meter');
  bar.setAttribute('aria-label', 'its part, of what the server with most has');
  const box = element('article', 'panel card');
  box.append(element('h3', '', element('span'), element('small'), element('span', 'tone')), element('p', 'problem'), bar, cells);
  cells.addEventListener('pointerover', (e) => { if (e.target !== cells) point(e.target); });
  cells.addEventListener('pointerleave', () => { if (document.activeElement !== cells) point(null); });
  cells.addEventListener('click', (e) => { if (e.target !== cells) point(e.target); });
  cells.addEventListener('focus', () => { if (chosen?.parentElement !== cells) point(cells.firstElementChild); });
  cells.addEventListener('blur', () => point(null));
  cells.addEventListener('keydown', walk);
  return box;
}

function update(box, s, shade, moving) {
  const [title, problem, bar, cells] = box.children;
  const bytes = s.shards.reduce((sum, one) => sum + one[1], 0);
  const rates = s.shards.filter((one) => one[2] >= 0);
  level(box, s.problem ? 'bad' : 'ok');
  say(title.children[0], s.name);
  say(title.children[1], [words.plural(s.shards.length, 'shard'), words.bytes(bytes), rates.length > 0 ? words.rate(rates.reduce((sum, one) => sum + one[2], 0)) + ' rows/s' : ''].filter(Boolean).join(', '));
  say(title.children[2], s.problem ? 'away' : 'answers');
  show(problem, Boolean(s.problem));
  say(problem, s.problem ? s.problem + (s.shards.length > 0 ? '; what is below is old' : '') : '');
  bar.firstChild.style.width = 100 * s.share + '%';
  bar.setAttribute('aria-valuenow', Math.round(100 * s.share));
  show(cells, s.shards.length > 0);
  list(cells, s.shards, ([n]) => String(n), ([n]) => {
    const cell = element('i');
    cell.id = 'shard-' + s.name + '-' + n;
    cell.setAttribute('role', 'option');
    return cell;
  }, (cell, one) => {
    cell.facts = { server: s, one, move: moving.get(one[0]) };
    mark(cell, 'shade', String(shade(one)));
    mark(cell, 'state', one[3] ? 'closed' : moving.has(one[0]) ? 'moving' : '');
  });
}

function mark(e, name, value) {
  if ((e.dataset[name] ?? '') !== value) e.dataset[name] = value;
}

// walk goes from cell to cell with the arrow keys.
function walk(event) {
  const cells = event.currentTarget.children;
  const at = [].indexOf.call(cells, chosen);
  const row = [].findIndex.call(cells, (c) => c.offsetTop > cells[0].offsetTop);
  const across = row < 0 ? cells.length : row;
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, ArrowDown: at + across, ArrowUp: at - across, PageDown: at + 10 * across, PageUp: at - 10 * across, Home: 0, End: cells.length - 1 }[event.key];
  if (event.key === 'Escape') point(null);
  if (to === undefined) return;
  event.preventDefault();
  point(cells[Math.max(0, Math.min(to, cells.length - 1))]);
  chosen.scrollIntoView({ block: 'nearest' });
}

// point shows what is known of a cell beside it; null: of none.
function point(cell) {
  if (chosen) {
    chosen.removeAttribute('aria-selected');
    chosen.parentElement?.removeAttribute('aria-activedescendant');
  }
  chosen = cell;
  show($('shard-tip'), Boolean(cell));
  if (!cell) return;
  cell.setAttribute('aria-selected', 'true');
  cell.parentElement.setAttribute('aria-activedescendant', cell.id);
  tell(cell);
  const tip = $('shard-tip');
  const [here, around] = [cell.getBoundingClientRect(), $('shards').getBoundingClientRect()];
  tip.style.left = Math.max(0, Math.min(here.left - around.left, around.width - tip.offsetWidth)) + 'px';
  tip.style.top = here.bottom - around.top + 8 + 'px';
}

function tell(cell) {
  const { server, one: [n, bytes, rate, closed], move } = cell.facts;
  const state = [
    server.problem ? 'its server is away' : closed ? 'closed: nobody serves it' : 'served by ' + server.name,
    move ? `${move.phase}, from ${move.from} to ${move.to}` : '',
  ].filter(Boolean).join('; ');
  say($('shard-name'), 'shard ' + n);
  facts($('shard-facts'), [['size', words.bytes(bytes)], ['written', rate < 0 ? 'not known yet' : words.rate(rate) + ' rows/s'], ['state', state]]);
  cell.setAttribute('aria-label', `shard ${n}, ${words.bytes(bytes)}, ${rate < 0 ? '' : words.rate(rate) + ' rows a second, '}${state}`);
}

// moves draws what is under way.
function moves() {
  show($('moves'), known.moves.length > 0);
  list($('move-rows'), known.moves, (m) => m.from + ' ' + m.to + ' ' + m.list, () => {
    const tr = element('tr');
    const head = element('th');
    head.scope = 'row';
    tr.append(head, element('td'), element('td'), element('td', 'n wide'), element('td', 'n'), element('td', 'n wide'));
    return tr;
  }, (tr, m) => {
    const [which, way, phase, rows, behind, since] = tr.children;
    say(which, m.list);
    say(way, m.from + ' → ' + m.to);
    const part = m.moved > 0 && m.moved < m.shards.length ? `, ${m.moved} of ${m.shards.length} moved` : '';
    say(phase, m.phase + part + (m.problem ? ': ' + m.problem : ''));
    say(rows, `${words.count(m.rows)} of ${words.count(m.rows_total)}`);
    say(behind, m.lag_bytes < 0 ? '?' : words.bytes(m.lag_bytes));
    say(since, words.span(m.for_seconds));
  });
}
