// The page asks the server once a second while somebody looks at it, and draws.

import * as cards from './cards.js';
import { clientCards } from './clients.js';
import { decoder } from './decode.js';
import { element, level, list, say, show } from './elements.js';
import { History } from './history.js';
import { Plot } from './plot.js';
import { seriesTable } from './series.js';
import * as cluster from './shards.js';
import * as words from './words.js';
import { workerTable } from './workers.js';

const every = 1000; // ms between two questions
const patience = 5000; // ms for an answer

const $ = (id) => document.getElementById(id);

let token = ''; // in memory, and nowhere else
let chosen = ''; // the series of the plots; '' is all
let picture = null; // the last one that came
let heard = 0; // when, on the page's clock
let histories = new Map();
let timer = 0;
let asking = false;

const seconds = () => performance.now() / 1000;

const rates = new Plot($('rate-plot'), [['', (p) => p.rate]], words.rate, false);
const latencies = new Plot($('latency-plot'), [['', (p) => p.p50], ['p99', (p) => p.p99]], words.took, true);

// ask fetches a path of the server as JSON. What is thrown is for people.
async function ask(path) {
  let answer;
  try {
    answer = await fetch(path, {
      headers: token ? { Authorization: 'Bearer ' + token } : {},
      cache: 'no-store', credentials: 'same-origin', signal: AbortSignal.timeout(patience),
    });
  } catch {
    throw new Error('the server does not answer');
  }
  const body = await answer.json().catch(() => ({}));
  if (answer.ok) return body;
  const error = new Error([body.detail ?? `the server answers ${answer.status}`, body.hint].filter(Boolean).join('; '));
  error.status = answer.status;
  throw error;
}

// tick asks, draws, and comes again.
async function tick() {
  if (asking || document.hidden) return;
  asking = true;
  clearTimeout(timer);
  const begun = performance.now();
  const used = token;
  let error = null;
  try {
    take(await ask('console/state'));
  } catch (e) {
    error = e;
  }
  asking = false;
  if (used !== token) return tick(); // another was given meanwhile
  if (error?.status === 401 || error?.status === 403) return locked(error); // until one is given
  if (error) gone(error);
  timer = setTimeout(tick, Math.max(every - (performance.now() - begun), every / 4));
}

// take draws a new picture.
function take(now) {
  if (picture && picture.began_ms !== now.began_ms) histories = new Map();
  picture = now;
  heard = seconds();
  const all = new Map([['', now.all], ...now.series.map((s) => [s.name, s])]);
  for (const name of histories.keys()) if (!all.has(name)) histories.delete(name);
  for (const [name, counts] of all) {
    if (!histories.has(name)) histories.set(name, new History());
    histories.get(name).add(heard, now.up_seconds, counts, now.bounds);
  }
  if (!all.has(chosen)) chosen = '';
  show($('enter'), false);
  show($('live'), true);
  delete $('live').dataset.stale;
  status(now);
  draw();
  cluster.shards(now.shards, ask);
}

function draw() {
  const now = seconds();
  const history = histories.get(chosen);
  const name = chosen === '' ? 'of all series' : 'of ' + chosen;
  rates.draw(history.points, now, name);
  latencies.draw(history.points, now, name);
  const total = histories.get('').now();
  say($('now-rate'), words.rate(total.rate));
  say($('now-requests'), words.rate(total.requests));
  say($('now-p99'), words.took(total.p99));
  say($('now-errors'), words.rate(total.errors));
  $('now-errors').classList.toggle('some', total.errors > 0);
  const left = least(picture);
  say($('now-left'), left === null ? '–' : words.span(left));
  seriesTable(picture, histories, chosen, now, (name) => { chosen = name; draw(); });
  cards.sourceCards(picture);
  workerTable(picture.roster);
  cards.storeCards(picture.stores);
  clientCards(picture);
  say($('version'), picture.version ?? '');
  foot();
}

function foot() {
  const text = `up for ${words.span(picture.up_seconds)}; ${words.plural(picture.refused, 'request')} refused for name, right or limit. `;
  if (!$('foot').firstChild) $('foot').append('', forget);
  if ($('foot').firstChild.data !== text) $('foot').firstChild.data = text;
  show(forget, token !== '');
}

const forget = element('button', '', 'Forget the token');
forget.type = 'button';
forget.addEventListener('click', () => { token = ''; tick(); });

// least is how long the first source to end goes on without its store. What is used up has nothing to end.
function least(now) {
  const all = now.sources.filter((s) => !cards.usedUp(s)).map(cards.inHand).filter((s) => s !== null);
  return all.length > 0 ? Math.min(...all) : null;
}

// status says in one word how it is, and why.
function status(now) {
  const levels = now.sources.map(cards.sourceLevel);
  const away = now.sources.filter((s) => s.state.store_away && cards.left(s) !== null);
  const left = away.length > 0 ? Math.min(...away.map(cards.left)) : null;
  const problems = [...new Set([...now.problems, ...(now.ready ? now.sources.map((s) => s.problem).filter(Boolean) : [])])];
  const soon = now.sources.filter((s) => cards.endsIn(s) !== null);
  const dead = now.sources.filter((s) => cards.usedUp(s) || (!s.ready && !cards.goesOn(s))).length;
  const cannot = dead < levels.length ? 'Some series cannot issue' : 'Cannot issue';
  if (!now.ready) {
    const word = dead > 0 ? cannot : levels.includes('bad') ? 'Ids end soon' : 'Not ready';
    const end = away.filter(cards.goesOn).map(cards.left);
    tell('bad', word, (end.length > 0 ? `${dead === 0 ? 'They' : 'Others'} end in ${words.span(Math.min(...end))} unless the store comes back. ` : '') + '/readyz says no.', problems);
  } else if (dead > now.sources.filter(cards.usedUp).length) {
    tell('bad', cannot, 'They need their store for each number. /readyz says yes for the others.', problems);
  } else if (dead > 0) {
    tell('bad', cannot, 'All their numbers are given out. /readyz says yes: another server could do no better.', problems);
  } else if (soon.length > 0 && !now.sources.some((s) => s.problem || s.state.store_away)) {
    tell('warn', 'Used up soon', soon.map((s) => `${s.name} has ids for ${words.span(cards.endsIn(s))} at this rate.`).join(' '), []);
  } else if (levels.includes('warn') && !now.sources.some((s) => s.state.store_away)) {
    tell('warn', 'Numbers run out', 'There are no more than what is reserved.', problems);
  } else if (levels.includes('warn')) {
    tell('warn', 'Issuing without the store', left === null ? 'Ids go on for now.' : `Ids go on for ${words.span(left)} unless it comes back before.`, problems);
  } else if (now.front.reload?.problem) {
    tell('warn', 'Reload refused', 'The server goes by the settings of before.', [now.front.reload.problem]);
  } else if (now.sources.length === 0) {
    tell('ok', 'Ready', 'No series was asked for yet; the first request makes one.', []);
  } else {
    tell('ok', 'Can issue', `${words.plural(now.series.length + now.more, 'series', 'series')}, all well.`, []);
  }
}

// tell writes the state. Only the word is read aloud, and only when it changes.
function tell(name, word, because, reasons) {
  level($('status'), name);
  say($('word'), word);
  say($('because'), because);
  show($('reasons'), reasons.length > 0);
  list($('reasons'), reasons.map((text, i) => [String(i), text]), ([key]) => key, () => element('li'), (li, [, text]) => say(li, text));
  document.title = { ok: '✓', warn: '!', bad: '✕', gone: '✕', wait: '…' }[name] + ' ' + word + ' – firn';
}

// gone says that the server does not answer. What was seen last stays, and looks old.
function gone(error) {
  const since = picture ? `Last heard ${words.span(seconds() - heard)} ago; what is below is old. ` : '';
  tell('gone', 'No answer from the server', since + 'Trying again.', [error.message]);
  if (picture) $('live').dataset.stale = '';
}

// locked asks for a token, and shows nothing that a token is needed for.
function locked(error) {
  const tried = token !== '';
  token = '';
  picture = null;
  histories = new Map();
  cluster.forget();
  show($('live'), false);
  $('readings').replaceChildren();
  $('foot').replaceChildren();
  if (tried || $('enter').hidden) tell('wait', tried ? 'The token is not enough' : 'A token is needed', tried ? error.message : '', []);
  if ($('enter').hidden) {
    show($('enter'), true);
    $('token').focus();
  }
}

$('enter').addEventListener('submit', (event) => {
  event.preventDefault();
  token = $('token').value.trim();
  $('token').value = '';
  tick();
});
document.addEventListener('visibilitychange', tick);
decoder(ask);
tick();
