// The colours of what is drawn, out of the style sheet: there is one list of them.

// read returns the value of a custom property.
export const read = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// steps is how many shades a ramp has.
const steps = 32;

// ramp mixes the stops --heat-0 to --heat-3 into shades, the least first.
export function ramp() {
  const stops = [0, 1, 2, 3].map((i) => parse(read(`--heat-${i}`)));
  return Array.from({ length: steps }, (_, i) => {
    const at = (i / (steps - 1)) * (stops.length - 1);
    const below = Math.min(Math.floor(at), stops.length - 2);
    const mixed = stops[below].map((from, channel) => Math.round(from + (stops[below + 1][channel] - from) * (at - below)));
    return `rgb(${mixed.join(' ')})`;
  });
}

// shade picks one for a count, on a logarithmic scale that ends at most.
export function shade(shades, n, most) {
  const part = most > 1 ? Math.log(n) / Math.log(most) : 0;
  return shades[Math.min(shades.length - 1, Math.max(0, Math.round(part * (shades.length - 1))))];
}

const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
