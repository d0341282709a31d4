// The decoder: an id, bit by bit.

import { element } from './elements.js';
import * as words from './words.js';

const box = document.getElementById('readings');
let asked = 0; // only the answer to the last question is shown

// decoder asks about what is typed. ask fetches a path of the server.
export function decoder(ask) {
  const form = document.getElementById('decode-form');
  const input = document.getElementById('id-text');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const mine = ++asked;
    let shown;
    try {
      const answer = await ask('console/decode/' + encodeURIComponent(input.value.trim()));
      shown = answer.readings.map((r) => reading(r, answer.readings.length));
    } catch (error) {
      shown = [element('p', 'wrong', error.message)];
    }
    if (mine === asked) box.replaceChildren(...shown);
  });
}

function reading(r, of) {
  const div = element('div', 'reading');
  if (r.series) {
    const number = r.id === '0' ? '' : `, the number ${words.digits(r.id)}`;
    div.append(
      element('h3', '', `a document of series ${r.series}`),
      element('p', 'when', element('b', '', r.text), `: ${r.period ? `date ${r.period}, ` : ''}count ${words.digits(r.count)}${number}`),
    );
    return div;
  }
  if (!r.layout) {
    div.append(element('h3', '', r.known ? 'the number behind it' : 'a plain number'), element('p', 'when', `${words.digits(r.id)}: no layout that is known here makes sense of it`));
    if (r.known) div.lastChild.textContent = words.digits(r.id);
    return div;
  }
  const whose = r.known ? `layout ${r.layout}, which ids of this server have` : `${of > 1 ? 'perhaps ' : ''}layout ${r.layout}; of no series here`;
  div.append(
    element('h3', '', whose),
    element('p', 'when', element('b', '', r.time), ` (UTC), ${words.ago(r.unix_ms)}`),
    element('p', 'when note', words.localTime(r.unix_ms)),
    bits(r),
    element('p', 'note', element('span', 'mono', r.spec)),
  );
  if (r.same) div.append(element('p', 'note', `the same bits as ${r.same}`));
  return div;
}

// bits draws the fields from the highest bit down, each as wide as it has bits.
function bits(r) {
  const ul = element('ul', 'bits');
  let at = 64;
  const hues = new Map([['time', 0], ['worker', 1], ['seq', 2], ['shard', 3]]);
  let next = 4;
  for (const f of r.fields) {
    const top = f.shift + f.width;
    if (top < at) ul.append(block('unused', top, at - top, r.bits));
    at = f.shift;
    const li = block(f.name, f.shift, f.width, r.bits, f.value);
    if (!hues.has(f.name)) hues.set(f.name, next++);
    li.style.setProperty('--hue', `var(--f${hues.get(f.name) % 6})`);
    ul.append(li);
  }
  if (at > 0) ul.append(block('unused', 0, at, r.bits));
  return ul;
}

function block(name, shift, width, all, value) {
  const li = element('li', value === undefined ? 'unused' : '');
  li.style.setProperty('--width', width);
  const places = width === 1 ? `bit ${shift}` : `bits ${shift + width - 1}–${shift}`;
  const drawn = element('span', 'mono', all.slice(64 - shift - width, 64 - shift).replace(/\B(?=(.{4})+$)/g, ' '));
  drawn.setAttribute('aria-hidden', 'true');
  li.append(element('b', '', name), ' ', element('small', '', places), drawn);
  if (value !== undefined) li.append(element('span', 'value', words.digits(value)));
  return li;
}
