/** The makespans as horizontal bars, one group a workload, in multiples of the group's lower bound. */
import { writeFileSync } from 'node:fs';

export interface Bar {
  readonly label: string;
  readonly ms: number;
  readonly colour: string;
}

export interface BarGroup {
  readonly title: string;
  readonly boundMs: number;
  readonly bars: readonly Bar[];
}

const WIDTH = 900;
const LABELS = 250;
const BAR = 16;
const GAP = 24;
const HEAD = 70;

export function writeChart(file: string, groups: readonly BarGroup[]): void {
  const longest = Math.max(...groups.flatMap(({ bars, boundMs }) => bars.map(({ ms }) => ms / boundMs)));
  const scale = (WIDTH - LABELS - 90) / longest;
  const parts: string[] = [];
  let y = HEAD;
  for (const { title, boundMs, bars } of groups) {
    parts.push(text(8, y + 12, title, 'font-weight="600"'));
    y += 20;
    for (const { label, ms, colour } of bars) {
      const width = (ms / boundMs) * scale;
      parts.push(
        text(LABELS - 8, y + 12, label, 'text-anchor="end" fill="#555"'),
        `<rect x="${LABELS}" y="${y + 2}" width="${width.toFixed(1)}" height="${BAR - 4}" fill="${colour}"/>`,
        text(LABELS + width + 6, y + 12, `${(ms / 1_000).toFixed(2)} s`, 'fill="#555"'),
      );
      y += BAR;
    }
    y += GAP;
  }
  const bound = LABELS + scale;
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${y}" fill="#fff"/>`,
    text(8, 24, 'From the message to the end of the answer', 'font-size="16" font-weight="600"'),
    text(
      8,
      44,
      'Bars in multiples of the lower bound of the row (dashed); shorter is better. Own tokens.',
      'fill="#555"',
    ),
    `<line x1="${bound.toFixed(1)}" y1="${HEAD - 8}" x2="${bound.toFixed(1)}" y2="${y - GAP}" stroke="#c33" stroke-dasharray="4 3"/>`,
    ...parts,
    '</svg>',
  ];
  writeFileSync(file, `${svg.join('\n')}\n`);
}

function text(x: number, y: number, content: string, attributes: string): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x.toFixed(1)}" y="${y}" ${attributes}>${escaped}</text>`;
}
