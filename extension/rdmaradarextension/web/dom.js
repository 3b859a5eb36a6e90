// Elements are made here and nowhere else. Text goes in as text: the names of
// processes and devices are foreign, and must not become markup.

// element makes one: attributes by name, children as strings or elements.
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null && child !== ''));
  return made;
}

const svgNames = 'http://www.w3.org/2000/svg';

// shape makes an element of a drawing.
export function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS(svgNames, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== ''));
  return made;
}

// byID fails early: the page and its scripts belong together.
export function byID(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

// setText touches the page only when something changes.
export function setText(of, text) {
  if (of.textContent !== text) of.textContent = text;
}

export function setHidden(of, hidden) {
  if (of.hidden !== hidden) of.hidden = hidden;
}

export function setClass(of, name) {
  if (of.className !== name) of.className = name;
}
