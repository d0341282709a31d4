// Lines of the last minutes, as SVG. The styles are in the style sheet.

import { element, say } from './elements.js';
import { kept } from './history.js';
import * as words from './words.js';

const svg = 'http://www.w3.org/2000/svg';
const gap = 5; // seconds without an answer that no line is drawn over
const spans = [60, 120, kept]; // seconds that a plot may show

// spanOf is the shortest that shows all points.
const spanOf = (points, now) => spans.find((s) => points.length === 0 || now - points[0].at <= s) ?? kept;

function path(parent, cls) {
  const p = document.createElementNS(svg, 'path');
  if (cls) p.setAttribute('class', cls);
  parent.append(p);
  return p;
}

function picture(parent, cls) {
  const s = document.createElementNS(svg, 'svg');
  s.setAttribute('viewBox', `0 0 ${kept} 100`);
  s.setAttribute('preserveAspectRatio', 'none');
  if (cls) s.setAttribute('class', cls);
  parent.append(s);
  return s;
}

// runs cuts points into lines without gaps, as [x, y] with y from 0 to 1 upwards.
function runs(points, now, value, height) {
  const span = spanOf(points, now);
  const all = [];
  let run = [];
  let before = -Infinity;
  for (const p of points) {
    const v = value(p);
    const x = kept * (1 - (now - p.at) / span);
    if (!Number.isFinite(v) || x < 0) continue;
    if (p.at - before > gap) all.push(run = []);
    before = p.at;
    run.push([x.toFixed(1), (100 - 100 * height(v)).toFixed(1)]);
  }
  return all;
}

const line = (all) => all.map((run) => 'M' + run.map((p) => p.join(' ')).join('L') + (run.length === 1 ? 'h.5' : '')).join('');
const area = (all) => all.map((run) => `M${run[0][0]} 100L` + run.map((p) => p.join(' ')).join('L') + `L${run.at(-1)[0]} 100Z`).join('');

// ceiling is the next of 1, 2, 5, 10, 20, ... that is not below n.
function ceiling(n) {
  const ten = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
  return [1, 2, 5, 10].map((k) => k * ten).find((k) => k >= n * 0.9999) ?? 10;
}

const rising = (top) => ({ height: (v) => v / top, marks: [0, top / 2, top] });

// decades is a scale on which each factor of ten takes the same room.
function decades(low, high) {
  const from = Math.min(Math.floor(Math.log10(low) + 1e-9), -6);
  const to = Math.max(Math.ceil(Math.log10(high) - 1e-9), from + 3);
  const step = to - from > 4 ? 2 : 1;
  const marks = [];
  for (let e = from; e <= to; e += step) marks.push(10 ** e);
  return { height: (v) => (Math.log10(v) - from) / (to - from), marks };
}

// A Plot is one with axes. lines are [class, value of a point].
export class Plot {
  constructor(figure, lines, write, log) {
    Object.assign(this, { lines, write, log });
    this.of = figure.querySelector('.of');
    this.box = element('div', 'plot');
    this.box.setAttribute('role', 'img');
    const s = picture(this.box);
    this.grid = path(s, 'grid');
    this.area = log ? null : path(s, 'area');
    this.paths = lines.map(([cls]) => path(s, cls));
    this.marks = [];
    this.then = element('span', 'x then');
    this.box.append(this.then, element('span', 'x now', 'now'));
    figure.append(this.box);
  }

  draw(points, now, name) {
    const values = points.flatMap((p) => this.lines.map(([, value]) => value(p))).filter(Number.isFinite);
    const high = Math.max(...values, this.log ? 1e-3 : 1);
    const scale = this.log ? decades(Math.min(...values, 1e-6), high) : rising(ceiling(high));
    say(this.of, name);
    const span = spanOf(points, now);
    say(this.then, words.span(span) + ' ago');
    this.axis(scale);
    for (const [i, [, value]] of this.lines.entries()) {
      const all = runs(points, now, value, scale.height);
      this.paths[i].setAttribute('d', line(all));
      if (i === 0 && this.area) this.area.setAttribute('d', area(all));
    }
    const last = values.length === 0 ? 'nothing yet' : `now ${this.write(this.lines.at(-1)[1](points.at(-1)))}, at most ${this.write(Math.max(...values))} in the last ${words.span(span)}`;
    this.box.setAttribute('aria-label', `${name}: ${last}`);
  }

  axis(scale) {
    this.grid.setAttribute('d', scale.marks.map((v) => `M0 ${100 - 100 * scale.height(v)}H${kept}`).join(''));
    while (this.marks.length > scale.marks.length) this.marks.pop().remove();
    while (this.marks.length < scale.marks.length) {
      const mark = element('span', 'y');
      this.marks.push(mark);
      this.box.append(mark);
    }
    for (const [i, v] of scale.marks.entries()) {
      say(this.marks[i], this.write(v));
      this.marks[i].style.top = `calc(.5rem + (100% - 2rem) * ${1 - scale.height(v)})`;
    }
  }
}

// spark returns a small plot without axes, and what draws it.
export function spark() {
  const cell = element('span');
  const s = picture(cell, 'spark');
  s.setAttribute('aria-hidden', 'true');
  const filled = path(s, 'area');
  const drawn = path(s);
  cell.draw = (points, now) => {
    const high = Math.max(...points.map((p) => p.rate), 1);
    const all = runs(points, now, (p) => p.rate, (v) => 0.04 + 0.92 * v / high);
    filled.setAttribute('d', area(all));
    drawn.setAttribute('d', line(all));
  };
  return cell;
}
