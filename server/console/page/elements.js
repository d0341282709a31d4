// How elements are made, and changed only where they differ: a page that is looked at
// all day must not grow, and what is selected or focused must stay.

// element makes one of a tag and class with children.
export function element(tag, cls, ...children) {
  const e = document.createElement(tag);
  if (cls) e.className = cls;
  e.append(...children);
  return e;
}

// say changes the text of an element.
export function say(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// show hides an element, or does not.
export function show(e, yes) {
  if (e.hidden === yes) e.hidden = !yes;
}

// level says how bad it is.
export function level(e, name) {
  if (e.dataset.level !== name) e.dataset.level = name;
}

// list keeps one child of a parent for each item: make makes one, update fills it.
export function list(parent, items, key, make, update) {
  const old = new Map();
  const wanted = new Set(items.map(key));
  for (const child of [...parent.children]) {
    if (wanted.has(child.dataset.key)) old.set(child.dataset.key, child);
    else child.remove();
  }
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = key(item);
    let child = old.get(k);
    if (!child) {
      child = make(item);
      child.dataset.key = k;
    }
    if (child === at) at = at.nextElementSibling;
    else parent.insertBefore(child, at);
    update(child, item);
  }
}

// facts fills a dl with names and values; those without a value are left out.
export function facts(dl, all) {
  const shown = all.filter(([, value]) => value !== '' && value !== undefined);
  list(dl, shown.flatMap(([name, value]) => [['dt', name, name], ['dd', name, value]]),
    ([tag, name]) => tag + name, ([tag]) => element(tag), (e, [, , text]) => say(e, text));
}
