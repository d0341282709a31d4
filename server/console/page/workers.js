// The table of the workers of all pools.

import { element, list, say, show } from './elements.js';
import * as words from './words.js';

const $ = (id) => document.getElementById(id);

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
    say(number, w.text);
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
