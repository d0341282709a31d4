// The cards of what is of the whole process: who comes by which listener, with which token, and
// whether the settings that were read last are in force.

import { element, facts, level, list, say, show } from './elements.js';
import * as words from './words.js';

const $ = (id) => document.getElementById(id);

// clientCards draws a card for each listener, one for the tokens, and one for the settings.
export function clientCards({ began_ms, up_seconds, front }) {
  const all = front.listeners.map((l) => ({
    key: 'listener ' + l.listener, title: l.listener, level: 'ok', word: words.plural(l.open, 'connection'), problem: '',
    facts: [
      ['came', words.count(l.accepted)],
      ['refused', l.refused > 0 ? words.count(l.refused) + ', over limits.connections' : 'none'],
      ['dropped', l.listener === 'resp' ? (l.dropped > 0 ? words.count(l.dropped) + ', for what they sent or did not read' : 'none') : ''],
    ],
  }));
  if (front.tokens.length > 0) {
    all.push({
      key: 'tokens', title: 'tokens', level: 'ok', word: words.plural(front.tokens.length, 'token'), problem: '',
      facts: [
        ...front.tokens.map((t) => [t.name, words.plural(t.requests, 'request') + ', ' + words.plural(t.values, 'value')]),
        ['unknown tokens', front.unknown_tokens > 0 ? 'shown ' + words.plural(front.unknown_tokens, 'time') : 'none'],
      ],
    });
  }
  if (front.reload) {
    const ago = began_ms / 1000 + up_seconds - Date.parse(front.reload.at) / 1000; // both by the server's clock
    const { problem = '' } = front.reload;
    all.push({
      key: 'settings', title: 'settings', level: problem ? 'warn' : 'ok', word: problem ? 'reload refused' : 'in force', problem,
      facts: [[problem ? 'refused' : 'read', words.past(ago)]],
    });
  }
  list($('client-cards'), all, (c) => c.key, () => {
    const card = element('article', 'panel card');
    card.append(element('h3', '', element('span'), element('span', 'tone')), element('p', 'problem'), element('dl'));
    return card;
  }, (card, c) => {
    const [title, problem, dl] = card.children;
    level(card, c.level);
    say(title.children[0], c.title);
    say(title.children[1], c.word);
    show(problem, c.problem !== '');
    say(problem, c.problem);
    facts(dl, c.facts);
  });
}
