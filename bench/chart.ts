/** The charts of docs/benchmarks.md, as SVG. */
import { writeFileSync } from 'node:fs';

interface Heading {
  readonly title: string;
  readonly note: string;
}

export interface BarGroup {
  readonly title: string;
  readonly bars: readonly {
    readonly label: string;
    /** Length relative to the longest bar, from 0 to 1. */
    readonly share: number;
    /** The label at the end of the bar. */
    readonly shown: string;
    readonly colour?: string;
  }[];
}

interface Line {
  readonly label: string;
  readonly colour: string;
  readonly dashed: boolean;
  /** MB/s at each size. */
  readonly values: readonly number[];
}

const WIDTH = 820;
const HEIGHT = 420;
const LEFT = 60;
const RIGHT = 190;
const TOP = 60;
const BOTTOM = 50;
const LABELS = 250;
const BAR = 16;
const COLOURS = ['#999', '#0a7', '#d80', '#85c'];

/**
 * Horizontal bars, one group below the other.
 *
 * @param mark where a dashed line crosses all bars, from 0 to 1
 */
export function writeBars(file: string, heading: Heading, groups: readonly BarGroup[], mark?: number): void {
  const scale = WIDTH - LABELS - 90;
  const parts: string[] = [];
  let y = TOP;
  for (const { title, bars } of groups) {
    parts.push(text(8, y + 12, title, 'font-weight="600"'));
    y += 20;
    for (const [index, { label, share, shown, colour = COLOURS[index % COLOURS.length] ?? '#555' }] of bars.entries()) {
      const width = Math.max(1, share * scale);
      parts.push(
        text(LABELS - 8, y + 12, label, 'text-anchor="end" fill="#555"'),
        `<rect x="${LABELS}" y="${y + 2}" width="${width.toFixed(1)}" height="${BAR - 4}" fill="${colour}"/>`,
        text(LABELS + width + 6, y + 12, shown, 'fill="#555"'),
      );
      y += BAR;
    }
    y += 16;
  }
  if (mark !== undefined) {
    const x = (LABELS + mark * scale).toFixed(1);
    parts.push(`<line x1="${x}" y1="${TOP - 8}" x2="${x}" y2="${y - 16}" stroke="#c33" stroke-dasharray="4 3"/>`);
  }
  writeSvg(file, y, heading, parts);
}

/** A group, scaled so that the longest bars of all groups have the same length. */
export function barsOfOneUnit(
  title: string,
  unit: string,
  bars: readonly { readonly label: string; readonly value: number }[],
): BarGroup {
  const most = Math.max(...bars.map(({ value }) => value), 1e-9);
  return {
    title,
    bars: bars.map(({ label, value }) => ({
      label,
      share: value / most,
      shown: `${value.toFixed(value >= 100 ? 0 : 1)}${unit}`,
    })),
  };
}

/** One line per reader, both axes logarithmic. */
export function writeLines(file: string, heading: Heading, sizes: readonly number[], lines: readonly Line[]): void {
  const all = lines.flatMap(({ values }) => values);
  const low = Math.log10(Math.min(...all)) - 0.1;
  const high = Math.log10(Math.max(...all)) + 0.1;
  const x = (index: number): number => LEFT + (index * (WIDTH - LEFT - RIGHT)) / (sizes.length - 1);
  const y = (value: number): number => TOP + ((high - Math.log10(value)) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const ticks = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000].filter(
    (tick) => Math.log10(tick) > low && Math.log10(tick) < high,
  );
  const labels = spread(lines.map(({ values }) => y(values.at(-1) ?? 1)));
  const parts = [
    ...ticks.flatMap((tick) => [
      `<line x1="${LEFT}" y1="${y(tick).toFixed(1)}" x2="${WIDTH - RIGHT}" y2="${y(tick).toFixed(1)}" stroke="#eee"/>`,
      text(LEFT - 8, y(tick) + 4, String(tick), 'text-anchor="end" fill="#555"'),
    ]),
    ...sizes.map((size, index) =>
      text(x(index), HEIGHT - BOTTOM + 20, String(size), 'text-anchor="middle" fill="#555"'),
    ),
    ...lines.flatMap(({ label, colour, dashed, values }, index) => [
      `<polyline fill="none" stroke="${colour}" stroke-width="2"${dashed ? ' stroke-dasharray="5 4"' : ''} points="${values
        .map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`)
        .join(' ')}"/>`,
      text(WIDTH - RIGHT + 8, (labels[index] ?? 0) + 4, label, `fill="${colour}"`),
    ]),
  ];
  writeSvg(file, HEIGHT, heading, parts);
}

function writeSvg(file: string, height: number, { title, note }: Heading, parts: readonly string[]): void {
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${height}" fill="#fff"/>`,
    text(8, 24, title, 'font-size="16" font-weight="600"'),
    text(8, 44, note, 'fill="#555"'),
    ...parts,
    '</svg>',
  ];
  writeFileSync(file, `${svg.join('\n')}\n`);
}

/** Moves overlapping labels apart. */
function spread(places: readonly number[]): number[] {
  const order = places.map((place, index) => ({ place, index })).sort((a, b) => a.place - b.place);
  const moved: number[] = [];
  let last = -Infinity;
  for (const { place, index } of order) {
    last = Math.max(place, last + 15);
    moved[index] = last;
  }
  return moved;
}

function text(x: number, y: number, content: string, attributes: string): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" ${attributes}>${escaped}</text>`;
}
