/** Bodies of other protocols: their own documentation describes them. */
import * as z from 'zod';

/** A frame of a stream. */
export const surfaceFrame = z
  .looseObject({ type: z.string().describe('Type of the frame') })
  .describe('A frame, as the client of the protocol reads it');

export const surfaceBody = z
  .looseObject({})
  .describe('As the client of the protocol sends and reads it; unknown members are ignored');

export const surfaceDocument = z.looseObject({}).describe('As the client of the protocol reads it');

export const surfaceMessages = z
  .array(z.looseObject({}))
  .describe('Messages, as the client of the protocol reads them');
