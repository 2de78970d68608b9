/** How much the page shows at once. More is a click away, so that no run can make the page slow. The build replaces each by its number. */

/** Characters of a text before "Show all". */
export const textChars = 20_000;
/** Characters of a Markdown text that is formatted; longer ones are shown as they are. */
export const markdownChars = 200_000;
/** Characters of the JSON of a value before "Show all". */
export const jsonChars = 20_000;
/** Actions of a run in the conversation; the graph has all. */
export const actionsInMessage = 12;
/** Live output of an action in the run view: its end. */
export const progressChars = 65_536;
/** Edges of a graph that are drawn at once, those in view first. */
export const edgesDrawn = 6_000;
/** Dependencies of an action that are listed. */
export const linksShown = 40;
/** Milliseconds between two events that a replay waits at most. */
export const replayGapMs = 800;
/** Nested quotes, lists and emphasis in a Markdown text; deeper ones are shown as text. */
export const markdownDepth = 24;
/** Characters of one paragraph whose links and emphasis are formatted; longer ones are shown as they are. */
export const markdownRunChars = 16_000;
/** Characters that may be looked at to format a text: each step of the lexer counts all that follow in its block. */
export const markdownWork = 20_000_000;
/** Elements of a formatted text; the rest is shown as it is. */
export const markdownNodes = 20_000;
/** Characters of an address that becomes a link. */
export const urlChars = 2_048;
/** Thoughts and texts of a run in the conversation: the newest ones. */
export const blocksInMessage = 200;
/** Warnings of a run in the conversation. */
export const warningsInMessage = 3;
/** Files of a message, and their bytes: of one, and of all together (C2). */
export const files = 16;
export const fileBytes = 8_388_608;
export const messageFileBytes = 16_777_216;
/** Characters of the name of a file (C2). */
export const fileNameChars = 100;
/** Rows of a list, of a page of a list, and issues of a manifest, before "Show all" or "Load more". */
export const rows = 100;
/** Runs of a session in the list of sessions. */
export const runsInList = 3;
/** Links of a manifest to others. */
export const linksInList = 8;
/** Nodes of the drawing of a plan. */
export const planNodes = 200;
/** Characters of a text box for code. */
export const editorChars = 1_048_576;
/** Levels of a JSON Schema, and members of each object, in an example that is made from it. */
export const exampleDepth = 5;
export const exampleMembers = 30;
/** A view that stays up to date is loaded again after so long. */
export const refreshMs = 5_000;
/** After the last keystroke, before a text is checked. */
export const typingMs = 250;
/** Requests for approval in a list, with those that were decided while it was shown. */
export const approvalsShown = 400;
/** Runs of a session whose events are kept: the newest ones, and the one that is shown. */
export const runsKept = 20;
/** Events after the end of a run that are searched for the ends of its actions. */
export const lateEvents = 5_000;
