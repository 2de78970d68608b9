/** The `final` attribute of a `<response>` (P10). */
import type { Finality } from '../../domain/protocol-event.ts';
import type { TagHead } from './tag-head.ts';

export interface ReadFinality {
  readonly final: Finality;
  /** Names of unknown attributes. */
  readonly unknown: readonly string[];
  /** The value, if it is invalid. */
  readonly invalid: string | null;
}

export function readFinality(head: TagHead): ReadFinality {
  let final: Finality = null;
  let invalid: string | null = null;
  const unknown: string[] = [];
  head.attributes((name, value) => {
    if (name.toLowerCase() !== 'final') {
      unknown.push(name);
      return;
    }
    switch (value.trim().toLowerCase()) {
      case 'true':
      case 'yes':
      case '1':
      case 'final':
        final = true;
        break;
      case 'false':
      case 'no':
      case '0':
        final = false;
        break;
      case 'auto':
        break;
      default:
        invalid = value;
    }
  });
  return { final, unknown, invalid };
}
