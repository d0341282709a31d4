// The table of the series: what was given out, and how fast.

import { element, list, say, show } from './elements.js';
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
  const { kind, lease } = picture.sources[s.source].state;
  return lease ? 'pool ' + lease.pool : kind;
}
