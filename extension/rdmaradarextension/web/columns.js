// The columns of the heat map that the page has. A view brings all of them or the
// newest ones again, so that a view that was missed leaves no gap.

// kept is for how long, in milliseconds.
const kept = 30 * 60_000;

export class Columns {
  all = [];
  edges = [];

  add(heatmap, now) {
    if (heatmap.edges) {
      this.edges = heatmap.edges;
      this.all = [];
    }
    // What is still to come is from before the clock was set back.
    this.all = this.all.filter((column) => column.at <= now);
    const last = this.all.at(-1)?.at ?? 0;
    this.all.push(...heatmap.columns.filter((column) => column.at > last));
    const first = this.all.findIndex((column) => now - column.at <= kept);
    this.all.splice(0, first < 0 ? this.all.length : first);
  }

  // since has those that ended after a moment.
  since(moment) {
    const first = this.all.findIndex((column) => column.at > moment);
    return first < 0 ? [] : this.all.slice(first);
  }

  // lower is the lower edge of a bucket; there are two to an octave.
  lower(bucket) {
    return bucket > 0 ? this.edges[bucket - 1] : this.edges[0] / Math.SQRT2;
  }
}

// quantile is the upper edge of the bucket that this part of a column reaches, null
// when nothing completed.
export function quantile(column, edges, part) {
  const total = column.counts.reduce((sum, n) => sum + n, 0);
  if (total === 0) return null;
  let reached = 0;
  for (let i = 0; i < column.counts.length; i++) {
    reached += column.counts[i];
    if (reached >= total * part) return edges[column.first + i];
  }
  return null;
}
