// The cards of sources and stores: what the server says of them, in words.

import { element, facts, level, list, say, show } from './elements.js';
import * as words from './words.js';

const $ = (id) => document.getElementById(id);

// left is for how many seconds a source goes on without its store; null where that is not known.
export const left = (s) => s.state.left_seconds ?? null;

// inHand is for how many seconds a source goes on if its store goes away now; null where that is not
// known. What has nothing in hand, as most documents and what is not open yet, ends at once.
export const inHand = (s) => left(s) ?? (s.state.counter?.reserved > 0 || (s.ready && s.state.kind === 'flake') ? null : 0);

// usedUp reports whether a source has given all there was. It is ready: no other server
// could do better.
export const usedUp = (s) => s.state.exhausted && !s.state.counter?.reserved;

// endsIn is in how many seconds the layout of a source, or at this rate its numbers, are used up;
// null where that is more than a day, or not known.
export function endsIn(s) {
  const { at, used_up_at } = s.state;
  const left = (Date.parse(used_up_at) - Date.parse(at)) / 1000; // both by the server's clock
  return left < 86400 ? Math.max(left, 0) : null;
}

// sourceLevel is how bad it is with a source.
export const sourceLevel = (s) => (s.ready && !usedUp(s) ? (s.state.store_away || s.problem || endsIn(s) !== null ? 'warn' : 'ok') : 'bad');

// goesOn reports whether a source gives something for a while without its store.
export const goesOn = (s) => left(s) >= 1;

// sourceCards draws a card for each source, those in trouble first.
export function sourceCards(picture) {
  const order = ['bad', 'warn', 'ok'];
  const sources = picture.sources.toSorted((a, b) => order.indexOf(sourceLevel(a)) - order.indexOf(sourceLevel(b)));
  list($('source-cards'), sources, (s) => s.state.kind + ' ' + s.name + ' ' + (s.state.lease?.workers ?? ''), () => {
    const card = element('article', 'panel card');
    const bar = element('div', 'bar', element('i'));
    bar.setAttribute('role', 'meter');
    bar.setAttribute('aria-label', 'how long it goes on without its store');
    card.append(element('h3', '', element('span'), element('small'), element('span', 'tone')), element('p', 'problem'), bar, element('dl'));
    return card;
  }, (card, s) => {
    const [title, problem, bar, dl] = card.children;
    const { kind, lease, store, store_away, budget_seconds } = s.state;
    level(card, sourceLevel(s));
    say(title.children[0], (lease ? 'pool ' : '') + s.name);
    say(title.children[1], kind + (s.series > 1 ? ', ' + words.plural(s.series, 'series', 'series') : ''));
    say(title.children[2], usedUp(s) ? 'used up' : s.ready ? (store_away ? 'store away' : endsIn(s) !== null ? 'used up in ' + words.span(endsIn(s)) : 'can issue') : goesOn(s) ? 'ends soon' : 'cannot issue');
    show(problem, Boolean(s.problem));
    say(problem, s.problem ?? '');
    const share = Math.min((left(s) ?? 0) / (budget_seconds || 1), 1);
    show(bar, left(s) !== null && budget_seconds > 0);
    bar.firstChild.style.width = 100 * share + '%';
    bar.setAttribute('aria-valuenow', Math.round(100 * share));
    bar.setAttribute('aria-valuetext', words.span(left(s) ?? 0));
    facts(dl, [...onward(s), ...(lease ? leaseFacts(s) : numberFacts(s.state)), ['store', store]]);
  });
}

function onward(s) {
  if (left(s) === null) return [];
  const { lease, budget_seconds } = s.state;
  const most = lease && budget_seconds > 0 ? ', of ' + words.span(budget_seconds) + ' at most' : '';
  const rate = lease ? '' : ', at this rate';
  return [['without its store', words.span(left(s)) + most + rate]];
}

function leaseFacts({ layout, workers, state }) {
  const { term, leased_at, renewed_at, ahead_seconds, borrowed_seconds } = state.lease;
  const since = (text) => (Date.parse(state.at) - Date.parse(text)) / 1000; // both by the server's clock
  return [
    [workers?.length > 1 ? 'workers' : 'worker', workers ? workers.join(', ') + ', term ' + term : ''],
    ['held for', leased_at ? words.span(since(leased_at)) : ''],
    ['renewed', renewed_at ? words.past(since(renewed_at)) : ''],
    ['clock ahead of the store', ahead_seconds ? (ahead_seconds > 0 ? '+' : '−') + words.took(Math.abs(ahead_seconds)) : 'no'],
    ['borrowed', borrowed_seconds > 0 ? words.took(borrowed_seconds) : 'nothing'],
    ['waited', state.waits > 0 ? words.plural(state.waits, 'call') + ' for the clock' : 'no call for the clock'],
    ['layout', layout ? layout.split(';')[0] : ''],
    ['layout ends', state.used_up_at ? words.day(state.used_up_at) : ''],
  ];
}

function numberFacts({ kind, counter, used_up_at, waits }) {
  const { next, last, reserved, wasted } = counter ?? {};
  const used = Math.min(Number(next) / Number(last), 1);
  return [
    ['reserved', counter && (kind !== 'document' || reserved > 0) ? words.count(reserved) : ''],
    ['granted below', next ? words.digits(next) : ''],
    ['last number', last ? words.digits(last) : ''],
    ['used up', used >= 0.0001 ? Number((100 * used).toPrecision(2)) + ' %' : ''],
    ['at this rate ends', used_up_at ? words.far(used_up_at) : ''],
    ['wasted', wasted > 0 ? words.count(wasted) : ''],
    ['waited', waits > 0 ? words.plural(waits, 'call') : ''],
  ];
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
      ['durable', { true: 'yes: it keeps what it acknowledged', false: 'no: it can lose what it acknowledged' }[s.durable] ?? 'not heard yet'],
      ['seen', s.why ?? ''],
      ['used by', words.plural(s.sources, 'source')],
    ]);
  });
}
