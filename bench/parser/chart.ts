/** Throughput over chunk size, one line a reader, both axes logarithmic. */
import { writeFileSync } from 'node:fs';

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

export function writeChart(file: string, title: string, sizes: readonly number[], lines: readonly Line[]): void {
  const all = lines.flatMap(({ values }) => values);
  const low = Math.log10(Math.min(...all)) - 0.1;
  const high = Math.log10(Math.max(...all)) + 0.1;
  const x = (index: number): number => LEFT + (index * (WIDTH - LEFT - RIGHT)) / (sizes.length - 1);
  const y = (value: number): number => TOP + ((high - Math.log10(value)) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const ticks = [10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000].filter(
    (tick) => Math.log10(tick) > low && Math.log10(tick) < high,
  );
  const labels = spread(lines.map(({ values }) => y(values.at(-1) ?? 1)));
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text(8, 24, title, 'font-size="16" font-weight="600"'),
    text(8, 44, 'MB/s over characters in a chunk; higher is better', 'fill="#555"'),
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
    '</svg>',
  ];
  writeFileSync(file, `${svg.join('\n')}\n`);
}

/** Moves labels apart so that none covers another. */
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
