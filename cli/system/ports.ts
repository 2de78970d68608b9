/** The ports of a system on this machine (docs/configure.md): their defaults, and how they are written. */
import { UsageError } from '../command.ts';
import { visible } from '../terminal/visible.ts';
import type { StartSettings } from './start-settings.ts';

export const DEFAULT_PORTS = { PORT: 8787, RUNNER_PORT: 8790 } as const;

export type PortName = keyof typeof DEFAULT_PORTS;

const MOST_PORT = 65_535;

/**
 * @param least 0 where 0 selects a free port
 * @returns null if the text is not a port
 */
export function parsePort(text: string, least: 0 | 1 = 1): number | null {
  const port = Number(text);
  return /^\d{1,5}$/.test(text) && port >= least && port <= MOST_PORT ? port : null;
}

/** @returns null if the setting is not a port */
export function portIn(start: StartSettings, name: PortName): number | null {
  const text = start[name];
  return text === undefined ? DEFAULT_PORTS[name] : parsePort(text);
}

/** @throws UsageError that names the setting */
export function portOf(start: StartSettings, name: PortName): number {
  const port = portIn(start, name);
  if (port !== null) return port;
  throw new UsageError(`${name} "${visible((start[name] ?? '').slice(0, 100))}" is not a port (1-${MOST_PORT})`);
}
