/**
 * A scripted model that writes summaries: it reads the text of the request that it is given, and nothing else. It keeps the
 * facts that it finds, the newest value of each, and as many of the newest ones as the budget in the request allows.
 */
const FACT = /\bthe (code \d+) is (?:now )?(V\d+X\d+)/g;
const KEPT = /^ {4}(code \d+): (V\d+X\d+) \(turn_(\d+)\)$/;

export function summaryFor(request: string, count: (text: string) => number): string {
  const budget = Number(/at most (\d+) tokens/.exec(request)?.[1] ?? 0);
  const facts = new Map<string, string>();
  let turn = 0;
  for (const line of request.split('\n')) {
    turn = Number(/^turn_(\d+):$/.exec(line)?.[1] ?? turn);
    const kept = KEPT.exec(line);
    const found =
      kept === null
        ? Array.from(line.matchAll(FACT), ([, name = '', value = '']) => [name, `${value} (turn_${turn})`] as const)
        : [[kept[1] ?? '', `${kept[2]} (turn_${kept[3]})`] as const];
    for (const [name, value] of found) {
      // The order is that of the last change.
      facts.delete(name);
      facts.set(name, value);
    }
  }
  const lines: string[] = [];
  let left = budget;
  for (const [name, value] of [...facts].toReversed()) {
    const line = `${name}: ${value}`;
    left -= count(`${line}\n`);
    if (left < 0) break;
    lines.unshift(line);
  }
  return lines.length === 0 ? 'Nothing to keep.' : lines.join('\n');
}
