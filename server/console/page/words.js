// How numbers and times are written.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat('en', { maximumSignificantDigits: 4 });

// count writes a number of things: all digits up to a million.
export function count(n) {
  for (const [unit, name] of [[1e12, ' T'], [1e9, ' G'], [1e6, ' M']]) {
    if (n >= unit) return short.format(n / unit) + name;
  }
  return whole.format(n);
}

// bytes writes how large something is.
export function bytes(n) {
  for (const [unit, name] of [[1e12, ' TB'], [1e9, ' GB'], [1e6, ' MB'], [1e3, ' kB']]) {
    if (n >= unit * 0.9995) return Number((n / unit).toPrecision(3)) + name;
  }
  return n + ' B';
}

// rate writes things a second.
export function rate(n) {
  if (!Number.isFinite(n)) return '–';
  return n > 0 && n < 10 ? tenths.format(n) : count(n);
}

// digits groups the digits of a number that may be too large for JavaScript.
export function digits(text) {
  return text.replace(/\B(?=(\d{3})+$)/g, ',');
}

// took writes a short time, in seconds.
export function took(s) {
  if (!Number.isFinite(s)) return '–';
  for (const [unit, name] of [[1, ' s'], [1e-3, ' ms'], [1e-6, ' µs']]) {
    if (s >= unit * 0.9995) return Number((s / unit).toPrecision(2)) + name;
  }
  return s === 0 ? '0' : Math.round(s * 1e9) + ' ns';
}

// span writes a long time, in seconds, by its two largest units.
export function span(s) {
  s = Math.max(0, Math.floor(s));
  const units = [[31557600, 'y'], [86400, 'd'], [3600, 'h'], [60, 'min'], [1, 's']];
  const first = units.findIndex(([size]) => s >= size);
  if (first < 0) return '0 s';
  const parts = [];
  for (const [size, name] of units.slice(first, first + 2)) {
    const n = Math.floor(s / size);
    if (n > 0) parts.push(n + ' ' + name);
    s -= n * size;
  }
  return parts.join(' ');
}

const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const local = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'long' });

export const clockTime = (text) => clock.format(new Date(text));
export const localTime = (ms) => local.format(new Date(ms));

// ago writes how far a moment is from now.
export function ago(ms) {
  const s = (Date.now() - ms) / 1000;
  return s < 0 ? 'in ' + span(-s) : past(s);
}

// past writes how long ago it was, in seconds.
export const past = (s) => (s < 1 ? 'just now' : span(s) + ' ago');

// far writes when numbers end, which is not told for what is a lifetime away.
export const far = (text) => (Date.parse(text) - Date.now() > 99 * 31557600e3 ? 'not in 99 years' : day(text));

// day writes when something ends, which may be later than any Date.
export function day(text) {
  const year = text.indexOf('-', 1);
  return year > 4 ? 'year ' + text.slice(0, year) : text.slice(0, 10);
}

// plural writes a number with what it counts.
export const plural = (n, one, many = one + 's') => count(n) + ' ' + (n === 1 ? one : many);
