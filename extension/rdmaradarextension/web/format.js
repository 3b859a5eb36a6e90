// Numbers and moments as people read them. What is not known is "–".

export const unknown = '–';

const units = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
];

// duration takes nanoseconds: "1.9 µs", "380 µs", "4.2 ms".
export function duration(ns) {
  if (!ns) return unknown;
  for (const [size, name] of units) {
    if (ns >= size) return `${short(ns / size)} ${name}`;
  }
  return `${ns} ns`;
}

// span takes milliseconds: "8 s", "4 min 10 s", "2 h 5 min".
export function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return seconds % 60 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  if (minutes < 60) return `${minutes} min`;
  return minutes % 60 ? `${Math.floor(minutes / 60)} h ${minutes % 60} min` : `${minutes / 60} h`;
}

// clock takes milliseconds since the epoch: "03:12:44" in the viewer's time zone.
export function clock(ms) {
  const at = new Date(ms);
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((n) => String(n).padStart(2, '0')).join(':');
}

// short has three digits at least where they are worth something.
function short(value) {
  if (value >= 99.5) return String(Math.round(value));
  if (value >= 9.95) return trimmed(value.toFixed(1));
  return trimmed(value.toFixed(2));
}

const trimmed = (digits) => digits.replace(/\.?0+$/, '');

// count: "0", "812", "12.3 k", "4.1 M".
export function count(n) {
  for (const [size, name] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (n >= size * 10 || (size > 1e3 && n >= size)) return `${short(n / size)} ${name}`;
  }
  return whole(Math.round(n));
}

// whole has separators: "12 345".
export const whole = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, '\u2009');

// bits takes bytes per second: "312 Gb/s".
export function bits(bytes) {
  const perSecond = bytes * 8;
  for (const [size, name] of [[1e12, 'Tb/s'], [1e9, 'Gb/s'], [1e6, 'Mb/s'], [1e3, 'kb/s']]) {
    if (perSecond >= size) return `${short(perSecond / size)} ${name}`;
  }
  return `${Math.round(perSecond)} b/s`;
}

// size takes bytes: "32 KiB".
export function size(bytes) {
  for (const [unit, name] of [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]) {
    if (bytes >= unit) return `${short(bytes / unit)} ${name}`;
  }
  return `${bytes} B`;
}

export const percent = (part) => `${trimmed((part * 100).toFixed(1))} %`;

// hex is how tools print the number of a queue pair.
export const hex = (n) => `0x${n.toString(16)}`;

export const plural = (n, word) => `${whole(n)} ${word}${n === 1 ? '' : 's'}`;

// inOrder compares names as people count: mlx5_2 is before mlx5_10.
export const inOrder = new Intl.Collator(undefined, { numeric: true }).compare;

// processName is what to call a process, whose names are foreign text.
export function processName(process) {
  if (process.kernel) return `${process.name} (kernel)`;
  return process.name || `pid ${process.pid}`;
}
