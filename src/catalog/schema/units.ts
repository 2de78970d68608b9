/** Durations, sizes and shares as authors write them, in the units that the runtime counts in. */

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Seconds, or text with a unit, as whole milliseconds. */
export function toMs(duration: number | string): number {
  if (typeof duration === 'number') return Math.round(duration * 1_000);
  const [, amount, unit] = /([\d.]+)\s*(ms|s|m|h|d)/.exec(duration) ?? [];
  return Math.round(Number(amount) * (UNIT_MS[unit ?? 's'] ?? 1_000));
}

const UNIT_MB: Readonly<Record<string, number>> = { k: 1 / 1_024, m: 1, g: 1_024 };

/** MiB, or text with a unit, as MiB. */
function toMib(memory: number | string): number {
  if (typeof memory === 'number') return memory;
  const [, amount, unit] = /([\d.]+)\s*([kmg])/i.exec(memory) ?? [];
  return Number(amount) * (UNIT_MB[unit?.toLowerCase() ?? 'm'] ?? 1);
}

/** MiB, or text with a unit, as whole MiB, at least 1. */
export function toMebibytes(memory: number | string): number {
  return Math.max(1, Math.round(toMib(memory)));
}

/** MiB, or text with a unit, as bytes. */
export function toBytes(memory: number | string): number {
  return Math.max(1, Math.round(toMib(memory) * 1_048_576));
}

/** A number of CPUs, or thousandths such as `500m`. */
export function toCpus(cpu: number | string): number {
  if (typeof cpu === 'number') return cpu;
  const value = Number.parseFloat(cpu);
  return /m\s*$/.test(cpu) ? value / 1_000 : value;
}
