// The way from cell to cell of the heat map that keys take.

// far is how many columns Page Up and Page Down pass.
const far = 30;

const ways = {
  ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1],
  PageUp: [-far, 0], PageDown: [far, 0], Home: [-Infinity, 0], End: [Infinity, 0],
};

// step is the cell to which a key leads from another one, undefined of a key that leads
// nowhere. From none it leads to the slowest of the last column. A cell is the end of its
// column and the number of its bucket, which are from lowest to highest.
export function step(cell, key, columns, [lowest, highest]) {
  const way = ways[key];
  const last = columns.length - 1;
  if (!way || last < 0) return undefined;
  const from = cell ? columns.findIndex((column) => column.at === cell.at) : -1;
  if (from < 0) return { at: columns[last].at, bucket: slowestOf(columns[last]) ?? lowest };
  return { at: columns[within(from + way[0], 0, last)].at, bucket: within(cell.bucket + way[1], lowest, highest) };
}

const slowestOf = (column) => (column.counts.length > 0 ? column.first + column.counts.length - 1 : undefined);

const within = (n, least, most) => Math.max(least, Math.min(n, most));
