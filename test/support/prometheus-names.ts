/** The name of an OTLP metric in Prometheus, by OpenTelemetry's specification "Prometheus and OpenMetrics compatibility". */

const UNITS: Readonly<Record<string, string>> = { s: 'seconds', ms: 'milliseconds', By: 'bytes' };

export function prometheusName(text: string): string {
  return text.replaceAll(/[^a-zA-Z0-9_:]+/g, '_');
}

/** @throws Error for a unit that is not in the table above, and not in braces */
export function prometheusMetric(name: string, unit: string, isCounter: boolean): string {
  const base = prometheusName(name);
  const word = /^\{.*\}$/.test(unit) ? '' : (UNITS[unit] ?? fail(unit));
  const withUnit = word === '' || base.endsWith(`_${word}`) ? base : `${base}_${word}`;
  return isCounter ? `${withUnit.replace(/_total$/, '')}_total` : withUnit;
}

function fail(unit: string): never {
  throw new Error(`The unit ${JSON.stringify(unit)} has no name here (known: ${Object.keys(UNITS).join(', ')})`);
}
