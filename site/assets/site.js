"use strict";

const $ = (selector) => document.querySelector(selector);

// Colours: those of the system, until the switch chooses the others.
const system = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;

function showTheme() {
  const chosen = root.dataset.theme;
  $("#theme").setAttribute("aria-pressed", chosen ? chosen === "dark" : system.matches);
  for (const source of document.querySelectorAll("source.dark")) {
    source.media = chosen ? (chosen === "dark" ? "all" : "not all") : "(prefers-color-scheme: dark)";
  }
}

function switchTheme() {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  const next = dark ? "light" : "dark";
  if ((next === "dark") === system.matches) delete root.dataset.theme;
  else root.dataset.theme = next;
  try {
    if (root.dataset.theme) localStorage.setItem("theme", next);
    else localStorage.removeItem("theme");
  } catch {} // a page on a disk may have no storage
  showTheme();
}

$("#theme").hidden = false;
$("#theme").addEventListener("click", switchTheme);
system.addEventListener("change", showTheme);
showTheme();

// The navigation on a small screen. Without scripts the link leads to the page of all pages.
const menu = $("#menu");
function showMenu(open) {
  document.body.classList.toggle("open", open);
  menu.setAttribute("aria-expanded", open);
}
menu.textContent = "Menu";
menu.setAttribute("role", "button");
menu.setAttribute("aria-controls", "pages");
showMenu(false);
menu.addEventListener("click", (e) => {
  e.preventDefault();
  showMenu(!document.body.classList.contains("open"));
});
menu.addEventListener("keydown", (e) => {
  if (e.key !== " ") return;
  e.preventDefault();
  menu.click();
});
addEventListener("keydown", (e) => { if (e.key === "Escape") showMenu(false); });
$("#pages [aria-current]")?.scrollIntoView({ block: "nearest" });

// "On this page" shows where the reader is.
const entries = new Map([...document.querySelectorAll("aside a")].map((a) => [decodeURIComponent(a.hash.slice(1)), a]));
const headings = [...entries.keys()].map((id) => document.getElementById(id)).filter(Boolean);
function showHeading() {
  const above = headings.filter((h) => h.getBoundingClientRect().top < 120);
  for (const a of entries.values()) a.removeAttribute("aria-current");
  if (above.length) entries.get(above.at(-1).id).setAttribute("aria-current", "true");
}
addEventListener("scroll", showHeading, { passive: true });
showHeading();

// Copying: of a session only what is typed.
function typed(block) {
  const text = block.querySelector("pre").textContent;
  if (block.dataset.lang !== "console") return text;
  const lines = [];
  let command = false;
  for (const line of text.split("\n")) {
    command = line.startsWith("$ ") || (command && line.startsWith("> "));
    if (command) lines.push(line.slice(2));
  }
  return lines.join("\n") + "\n";
}
for (const block of navigator.clipboard ? document.querySelectorAll(".code") : []) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(typed(block)).then(() => (button.textContent = "Copied"), () => (button.textContent = "Not copied"));
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  block.append(button);
}

// The search. Its index is a script, which is loaded when the search is opened first.
const home = $(".brand").href;
const dialog = $("#search");
const query = $("#query");
const results = $("#results");
let parts; // of all pages: {url, title, heading, text}, and the same in lower case

function firnSearch(pages) {
  parts = pages.flatMap(({ url, title, parts }) => parts.map(({ id, heading, text }, i) => ({
    url: i ? `${url}#${id}` : url, title, heading: i ? heading : "", text,
    in: { title: title.toLowerCase(), heading: i ? heading.toLowerCase() : "", text: text.toLowerCase() },
  })));
  search();
}

// score is 0 for a part that lacks one of the words.
function score(part, words) {
  let sum = 0;
  for (const word of words) {
    const at = (text, points) => {
      const i = text.indexOf(word);
      if (i < 0) return 0;
      return points * (i === 0 || /[^\p{L}\p{N}]/u.test(text[i - 1]) ? 2 : 1);
    };
    const found = at(part.in.title, part.heading ? 6 : 20) + at(part.in.heading, 10) + at(part.in.text, 2);
    if (!found) return 0;
    sum += found;
  }
  if (words.length > 1 && (part.in.text.includes(words.join(" ")) || part.in.heading.includes(words.join(" ")))) sum += 15;
  return sum;
}

// mark appends a text with the words in it marked.
function mark(element, text, words) {
  const pattern = new RegExp(`(${words.map((w) => w.replace(/[^\p{L}\p{N}\s]/gu, "\\$&")).join("|")})`, "giu");
  text.split(pattern).forEach((piece, i) => {
    if (!piece) return;
    const node = i % 2 ? document.createElement("mark") : document.createTextNode(piece);
    if (i % 2) node.textContent = piece;
    element.append(node);
  });
}

function excerpt(part, words) {
  const first = Math.min(...words.map((w) => part.in.text.indexOf(w)).map((i) => (i < 0 ? Infinity : i)));
  const from = Number.isFinite(first) && first > 60 ? part.text.indexOf(" ", first - 50) + 1 : 0;
  const to = from + 170;
  return (from ? "… " : "") + part.text.slice(from, to) + (to < part.text.length ? " …" : "");
}

function result(part, words, i) {
  const li = document.createElement("li");
  li.id = `result-${i}`;
  li.setAttribute("role", "option");
  const a = document.createElement("a");
  a.href = new URL(part.url, home);
  a.tabIndex = -1;
  const b = document.createElement("b");
  mark(b, part.heading || part.title, words);
  if (part.heading) b.append(Object.assign(document.createElement("span"), { textContent: ` · ${part.title}` }));
  const small = document.createElement("small");
  mark(small, excerpt(part, words), words);
  a.append(b, small);
  a.addEventListener("click", () => dialog.close()); // the page may be this one
  li.append(a);
  return li;
}

function select(i) {
  const all = [...results.children];
  all.forEach((li, n) => li.setAttribute("aria-selected", n === i));
  if (all[i]) {
    query.setAttribute("aria-activedescendant", all[i].id);
    all[i].scrollIntoView({ block: "nearest" });
  } else query.removeAttribute("aria-activedescendant");
}

function search() {
  const words = query.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length || !parts) {
    results.replaceChildren();
    $("#count").textContent = parts ? "Words of a page, or of an error message." : "Loading the index.";
    return;
  }
  const found = parts.map((part) => [score(part, words), part]).filter(([points]) => points).sort((a, b) => b[0] - a[0]);
  $("#count").textContent = found.length > 30 ? `The best 30 of ${found.length} places` : `${found.length || "No"} ${found.length === 1 ? "place" : "places"}`;
  results.replaceChildren(...found.slice(0, 30).map(([, part], i) => result(part, words, i)));
  results.scrollTop = 0;
  select(0);
}

function openSearch() {
  if (!dialog.open) dialog.showModal();
  query.select();
  if (parts || $("#index")) return;
  const script = Object.assign(document.createElement("script"), { id: "index", src: new URL("search.js", home) });
  script.addEventListener("error", () => {
    $("#count").textContent = "The index was not loaded. Reload the page.";
  });
  document.head.append(script);
  search();
}

$("#search-open").hidden = false;
$("#search-open").addEventListener("click", openSearch);
addEventListener("keydown", (e) => {
  const typing = e.target.closest?.("input, textarea, select, dialog");
  if ((e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) || (e.key === "k" && (e.ctrlKey || e.metaKey))) {
    e.preventDefault();
    openSearch();
  }
});
query.addEventListener("input", search);
query.addEventListener("keydown", (e) => {
  const at = [...results.children].findIndex((li) => li.getAttribute("aria-selected") === "true");
  const move = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (move && results.children.length) {
    e.preventDefault();
    select((at + move + results.children.length) % results.children.length);
  } else if (e.key === "Enter") {
    e.preventDefault();
    results.children[at]?.firstChild.click();
  }
});
dialog.addEventListener("click", (e) => { if (e.target === dialog) dialog.close(); });
