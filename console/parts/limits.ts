/** How much the page shows at once. More is a click away, so that no run can make the page slow. */
export const limits = {
  /** Characters of a text before "Show all". */
  textChars: 20_000,
  /** Characters of a Markdown text that is formatted; longer ones are shown as they are. */
  markdownChars: 200_000,
  /** Characters of the JSON of a value before "Show all". */
  jsonChars: 20_000,
  /** Actions of a run in the conversation; the graph has all. */
  actionsInMessage: 12,
  /** Live output of an action in the run view: its end. */
  progressChars: 65_536,
  /** Edges of a graph that are drawn at once, those in view first. */
  edgesDrawn: 6_000,
  /** Dependencies of an action that are listed. */
  linksShown: 40,
  /** Milliseconds between two events that a replay waits at most. */
  replayGapMs: 800,
  /** Nested quotes, lists and emphasis in a Markdown text; deeper ones are shown as text. */
  markdownDepth: 24,
  /** Characters of one paragraph whose links and emphasis are formatted; longer ones are shown as they are. */
  markdownRunChars: 16_000,
  /** Elements of a formatted text; the rest is shown as it is. */
  markdownNodes: 20_000,
  /** Characters of an address that becomes a link. */
  urlChars: 2_048,
  /** Thoughts and texts of a run in the conversation: the newest ones. */
  blocksInMessage: 200,
  /** Warnings of a run in the conversation. */
  warningsInMessage: 3,
  /** Files of a message, and their bytes: of one, and of all together (C2). */
  files: 16,
  fileBytes: 8_388_608,
  messageFileBytes: 16_777_216,
  /** Characters of the name of a file (C2). */
  fileNameChars: 100,
  /** Characters of the note of a decision. */
  noteChars: 2_000,
  /** Rows of a list, of a page of a list, and issues of a manifest, before "Show all" or "Load more". */
  rows: 100,
  /** Runs of a session in the list of sessions. */
  runsInList: 3,
  /** Links of a manifest to others. */
  linksInList: 8,
  /** Nodes of the drawing of a plan. */
  planNodes: 200,
  /** Characters of a text box for code. */
  editorChars: 1_048_576,
  /** Levels of a JSON Schema, and members of each object, in an example that is made from it. */
  exampleDepth: 5,
  exampleMembers: 30,
  /** A view that stays up to date is loaded again after so long. */
  refreshMs: 5_000,
  /** After the last keystroke, before a text is checked. */
  typingMs: 250,
  /** Requests for approval in a list, with those that were decided while it was shown. */
  approvalsShown: 400,
  /** Runs of a session whose events are kept: the newest ones, and the one that is shown. */
  runsKept: 20,
  /** Events after the end of a run that are searched for the ends of its actions. */
  lateEvents: 5_000,
} as const;
