/** `format` of JSON Schema. The library's expressions take linear time, except the one for `url`. */
import { format } from '@cfworker/json-schema';
import type { WorkMeter } from '../domain/work.ts';

const WEB_ADDRESS = /^(?:https?|ftp):\/\/\S+$/i;
const CHARS_PER_STEP = 2;

/** Unknown formats match anything. @throws WorkExceeded */
export function matchesFormat(name: string, text: string, meter: WorkMeter): boolean {
  if (!Object.hasOwn(format, name)) return true;
  meter.charge(1 + text.length / CHARS_PER_STEP);
  if (name === 'url') return WEB_ADDRESS.test(text) && URL.canParse(text);
  return (format as Record<string, (text: string) => boolean>)[name]?.(text) ?? true;
}
