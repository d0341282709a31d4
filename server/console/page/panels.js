// The tables and cards: what the server says of itself, in words.

import { element, facts, level, list, say, show } from './elements.js';
import { spark } from './plot.js';
import * as words from './words.js';

const $ = (id) => document.getElementById(id);

// seriesTable draws a row for all series and one for each. choose is called with the
// name of one, '' for all.
export function seriesTable(picture, histories, chosen, now, choose) {
  const rows = picture.series.map((s) => ({ ...s, title: s.name, from: from(picture, s) }));
  if (rows.length !== 1) rows.unshift({ ...picture.all, name: '', title: 'all series', from: '' });
  list($('series-rows'), rows, (s) => s.name, (s) => {
    const tr = element('tr');
    const name = element('button', '', s.title);
    name.type = 'button';
    name.addEventListener('click', () => choose(s.name));
    const head = element('th', '', name);
    head.scope = 'row';
    tr.append(head, element('td', 'wide'), element('td', 'wide', spark()), element('td', 'n'), element('td', 'n wide'), element('td', 'n'), element('td', 'n'));
    return tr;
  }, (tr, s) => {
    const [head, source, plot, rate, p99, ids, failed] = tr.children;
    const points = histories.get(s.name);
    const last = points.now();
    tr.classList.toggle('chosen', s.name === chosen);
    head.firstChild.setAttribute('aria-pressed', s.name === chosen);
    say(source, s.from);
    plot.firstChild.draw(points.points, now);
    say(rate, words.rate(last.rate));
    say(p99, words.took(last.p99));
    say(ids, words.count(s.values));
    say(failed, words.count(s.errors));
    failed.classList.toggle('some', last.errors > 0);
  });
  show($('series-more'), picture.more > 0);
  say($('series-more'), `and ${words.plural(picture.more, 'more')}, which are counted in “all series” only`);
}

function from(picture, s) {
  const source = picture.sources[s.source];
  return source.pool ? 'pool ' + source.pool : source.kind;
}

// usedUp reports whether a source has given all there was. It is ready: no other server
// could do better.
export const usedUp = (s) => s.over && s.reserved === 0;

// sourceLevel is how bad it is with a source.
export const sourceLevel = (s) => (s.ready && !usedUp(s) ? (s.degraded || s.problem ? 'warn' : 'ok') : 'bad');

// goesOn reports whether a source gives something for a while without its store.
export const goesOn = (s) => s.left_seconds >= 1;

// sourceCards draws a card for each source, those in trouble first.
export function sourceCards(picture) {
  const order = ['bad', 'warn', 'ok'];
  const sources = picture.sources.toSorted((a, b) => order.indexOf(sourceLevel(a)) - order.indexOf(sourceLevel(b)));
  list($('source-cards'), sources, (s) => s.kind + ' ' + s.name + ' ' + (s.workers ?? ''), () => {
    const card = element('article', 'panel card');
    const bar = element('div', 'bar', element('i'));
    bar.setAttribute('role', 'meter');
    bar.setAttribute('aria-label', 'how long it goes on without its store');
    card.append(element('h3', '', element('span'), element('small'), element('span', 'tone')), element('p', 'problem'), bar, element('dl'));
    return card;
  }, (card, s) => {
    const [title, problem, bar, dl] = card.children;
    level(card, sourceLevel(s));
    say(title.children[0], (s.pool ? 'pool ' : '') + s.name);
    say(title.children[1], s.kind + (s.series > 1 ? ', ' + words.plural(s.series, 'series', 'series') : ''));
    say(title.children[2], usedUp(s) ? 'used up' : s.ready ? (s.degraded ? 'store away' : 'can issue') : goesOn(s) ? 'ends soon' : 'cannot issue');
    show(problem, Boolean(s.problem));
    say(problem, s.problem ?? '');
    const share = Math.min((s.left_seconds ?? 0) / (s.budget_seconds || 1), 1);
    show(bar, s.left_seconds !== null && s.budget_seconds > 0);
    bar.firstChild.style.width = 100 * share + '%';
    bar.setAttribute('aria-valuenow', Math.round(100 * share));
    bar.setAttribute('aria-valuetext', words.span(s.left_seconds ?? 0));
    facts(dl, [...onward(s), ...(s.pool ? leaseFacts(s) : numberFacts(s)), ['store', s.store]]);
  });
}

function onward(s) {
  if (s.left_seconds === null) return [];
  const most = s.pool && s.budget_seconds > 0 ? ', of ' + words.span(s.budget_seconds) + ' at most' : '';
  const rate = s.pool ? '' : ', at this rate';
  return [['without its store', words.span(s.left_seconds) + most + rate]];
}

function leaseFacts(s) {
  const held = s.workers?.length > 0 && !s.problem?.includes('no worker');
  return [
    [s.workers?.length > 1 ? 'workers' : 'worker', held ? s.workers.join(', ') + ', term ' + s.term : ''],
    ['held for', s.held_seconds ? words.span(s.held_seconds) : ''],
    ['renewed', s.renewed_seconds ? words.past(s.renewed_seconds) : ''],
    ['clock offset', s.clock_offset_seconds ? (s.clock_offset_seconds > 0 ? '+' : '−') + words.took(Math.abs(s.clock_offset_seconds)) : 'none'],
    ['borrowed', s.borrowed_seconds > 0 ? words.took(s.borrowed_seconds) : 'nothing'],
    ['waited', s.waits > 0 ? words.plural(s.waits, 'call') + ' for the clock' : 'no call for the clock'],
    ['layout', s.layout ? s.layout.split(';')[0] : ''],
    ['layout ends', s.ends ? words.day(s.ends) : ''],
  ];
}

function numberFacts(s) {
  const used = Math.min(Number(s.next) / Number(s.last), 1);
  const reserved = s.kind === 'document' && s.reserved === 0 ? '' : words.count(s.reserved) + (s.ahead > 0 ? ', ' + words.count(s.ahead) + ' of them in the next block' : '');
  return [
    ['reserved', reserved],
    ['granted below', s.next ? words.digits(s.next) : ''],
    ['last number', s.last ? words.digits(s.last) : ''],
    ['used up', used >= 0.0001 ? Number((100 * used).toPrecision(2)) + ' %' : ''],
    ['at this rate ends', s.ends ? words.far(s.ends) : ''],
    ['wasted', s.waste > 0 ? words.count(s.waste) : ''],
    ['waited', s.waits > 0 ? words.plural(s.waits, 'call') : ''],
  ];
}

// workerTable draws the workers of all pools.
export function workerTable(roster) {
  show($('workers'), Boolean(roster));
  show($('workers-link'), Boolean(roster));
  if (!roster) return;
  show($('worker-table'), roster.workers.length > 0);
  list($('worker-rows'), roster.workers, (w) => w.store + ' ' + w.pool + ' ' + w.worker, () => {
    const tr = element('tr');
    const head = element('th', 'n');
    head.scope = 'row';
    tr.append(head, element('td', 'wide'), element('td'), element('td'), element('td', 'n wide'), element('td'));
    return tr;
  }, (tr, w) => {
    const [number, pool, holder, state, term, horizon] = tr.children;
    tr.classList.toggle('free', w.state === 'free');
    tr.classList.toggle('chosen', w.ours);
    say(number, String(w.worker));
    say(pool, w.pool);
    say(holder, w.name || '–');
    say(state, w.ours ? 'this server' : w.state === 'held' ? 'held; free in ' + words.span(w.free_seconds) + ' if not renewed' : w.state);
    say(term, String(w.term));
    say(horizon, w.state !== 'free' ? words.clockTime(w.horizon) + ' (' + words.span(w.ahead_seconds) + ' ahead)' : words.ago(Date.parse(w.horizon)));
  });
  const old = roster.known ? `asked ${words.past(roster.age_seconds)}` : 'not heard yet';
  const more = roster.more > 0 ? `; ${words.plural(roster.more, 'more')} by firn worker ls` : '';
  say($('worker-note'), old + more + (roster.problem ? '; ' + roster.problem : ''));
}

// storeCards draws a card for each store.
export function storeCards(stores) {
  show($('stores'), stores.length > 0);
  list($('store-cards'), stores, (s) => s.url, () => {
    const card = element('article', 'panel card');
    card.append(element('h3', '', element('span', 'mono'), element('span', 'tone')), element('dl'));
    return card;
  }, (card, s) => {
    const [title, dl] = card.children;
    level(card, s.answers ? 'ok' : 'bad');
    say(title.children[0], s.url);
    say(title.children[1], s.answers ? 'answers' : 'does not answer');
    facts(dl, [
      ['promise', s.class ? s.class + (s.class === 'lossy' ? ': it can forget what it acknowledged' : ': it keeps what it acknowledged') : 'not heard yet'],
      ['seen', s.why ?? ''],
      ['used by', words.plural(s.sources, 'source')],
    ]);
  });
}
