/** W3C Trace Context, read strictly (O1). */
import { describe, expect, test } from 'vitest';

import { formatTraceparent, isSampled, parseTraceparent } from '../../telemetry/trace-context.ts';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('traceparent', () => {
  test.each([
    [`00-${TRACE}-${SPAN}-01`, 1],
    [`00-${TRACE}-${SPAN}-00`, 0],
    [`00-${TRACE}-${SPAN}-03`, 3],
    // unknown flags are dropped
    [`00-${TRACE}-${SPAN}-ff`, 3],
    [`00-${TRACE}-${SPAN}-fc`, 0],
    // a later version may add fields
    [`01-${TRACE}-${SPAN}-01`, 1],
    [`fe-${TRACE}-${SPAN}-01-more`, 1],
    [`cc-${TRACE}-${SPAN}-01-`, 1],
  ])('[O1] %s is read', (header, flags) => {
    const context = parseTraceparent(header);
    expect(context).toEqual({ traceId: TRACE, spanId: SPAN, flags });
    expect(context === null ? '' : formatTraceparent(context)).toBe(`00-${TRACE}-${SPAN}-0${flags}`);
    expect(context !== null && isSampled(context)).toBe((flags & 1) === 1);
  });

  test.each([
    undefined,
    '',
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE}-${SPAN}-01-`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-0g`,
    `00-${TRACE}-${SPAN}-011`,
    `01-${TRACE}-${SPAN}-01more`,
    `ff-${TRACE}-${SPAN}-01`,
    `0-${TRACE}-${SPAN}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN.toUpperCase()}-01`,
    `00-${TRACE.slice(1)}-${SPAN}-01`,
    `00-${TRACE}0-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00_${TRACE}_${SPAN}_01`,
    ` 00-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01\n`,
    // two headers, as the server joins them
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
  ])('[O1] %j is ignored', (header) => {
    expect(parseTraceparent(header)).toBeNull();
  });
});
