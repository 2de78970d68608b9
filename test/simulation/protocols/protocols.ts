/** The clients of other protocols, by name. */
import type { ProtocolName } from '../history.ts';
import { agUiClient } from './ag-ui.ts';
import { aiSdkClient } from './ai-sdk.ts';
import { chatClient } from './chat.ts';
import type { ClientProtocol } from './client-protocol.ts';
import { responsesClient } from './responses.ts';

export const CLIENT_PROTOCOLS: Readonly<Record<ProtocolName, ClientProtocol>> = {
  'ai-sdk': aiSdkClient,
  chat: chatClient,
  responses: responsesClient,
  'ag-ui': agUiClient,
};
