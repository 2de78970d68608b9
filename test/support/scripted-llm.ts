/** The scripted model server of the public test kit, under the name that the tests know. */
export { answer, startScriptedLlm } from '../../scripts/scripted-llm/server.ts';
export type { ScriptedLlm, ScriptedReply } from '../../scripts/scripted-llm/server.ts';
