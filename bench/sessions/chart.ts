/** Horizontal bars, one group below the other. */
import { writeFileSync } from 'node:fs';

export interface BarGroup {
  readonly title: string;
  readonly unit: string;
  readonly bars: readonly { readonly label: string; readonly value: number }[];
}

const COLOURS = ['#999', '#0a7', '#d80', '#85c'];
const WIDTH = 720;
const LEFT = 210;

export function writeBars(file: string, title: string, groups: readonly BarGroup[]): void {
  const parts: string[] = [];
  let y = 34;
  for (const group of groups) {
    parts.push(`<text x="12" y="${y + 14}" font-weight="bold">${escape(group.title)}</text>`);
    y += 24;
    const most = Math.max(...group.bars.map(({ value }) => value), 1e-9);
    for (const [index, { label, value }] of group.bars.entries()) {
      const width = Math.max(1, ((WIDTH - LEFT - 100) * value) / most);
      parts.push(
        `<text x="${LEFT - 8}" y="${y + 14}" text-anchor="end">${escape(label)}</text>`,
        `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="18" fill="${COLOURS[index % COLOURS.length]}"/>`,
        `<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + 14}">${value >= 100 ? value.toFixed(0) : value.toFixed(1)}${escape(group.unit)}</text>`,
      );
      y += 24;
    }
    y += 10;
  }
  writeFileSync(
    file,
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" font-family="system-ui, sans-serif" font-size="13">
<rect width="${WIDTH}" height="${y}" fill="#fff"/>
<text x="12" y="22" font-size="15">${escape(title)}</text>
${parts.join('\n')}
</svg>
`,
  );
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
