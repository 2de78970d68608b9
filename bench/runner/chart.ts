/** Latencies as horizontal bars, one group a sandbox and program; the axis is logarithmic. */
import { writeFileSync } from 'node:fs';

export interface LatencyGroup {
  readonly name: string;
  /** Milliseconds by name. */
  readonly bars: Readonly<Record<string, number>>;
}

const COLOURS = ['#999', '#48c', '#2a7'];
const WIDTH = 800;
const LABELS = 190;
const BAR = 16;
const HEAD = 50;
const LEAST_MS = 1;

export function barChart(file: string, title: string, groups: readonly LatencyGroup[]): void {
  const most = Math.max(10, ...groups.flatMap(({ bars }) => Object.values(bars).filter(Number.isFinite)));
  const scale = (WIDTH - LABELS - 90) / Math.log10(most / LEAST_MS);
  const parts: string[] = [];
  let y = HEAD;
  for (const { name, bars } of groups) {
    parts.push(text(8, y + 12, name, 'font-weight="600"'));
    for (const [at, [label, ms]] of Object.entries(bars).entries()) {
      if (!Number.isFinite(ms)) continue;
      const width = Math.max(1, Math.log10(ms / LEAST_MS) * scale);
      parts.push(
        text(LABELS - 8, y + 12, label, 'text-anchor="end" fill="#555"'),
        `<rect x="${LABELS}" y="${y + 2}" width="${width.toFixed(1)}" height="${BAR - 4}" fill="${COLOURS[at] ?? '#555'}"/>`,
        text(LABELS + width + 6, y + 12, `${ms.toFixed(1)} ms`, 'fill="#555"'),
      );
      y += BAR;
    }
    y += 10;
  }
  const svg = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${y}" fill="#fff"/>`,
    text(8, 24, title, 'font-size="16" font-weight="600"'),
    text(8, 42, 'Milliseconds on a logarithmic axis; shorter is better.', 'fill="#555"'),
    ...parts,
    '</svg>',
  ];
  writeFileSync(file, `${svg.join('\n')}\n`);
}

function text(x: number, y: number, content: string, attributes: string): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x.toFixed(1)}" y="${y}" ${attributes}>${escaped}</text>`;
}
