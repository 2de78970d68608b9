/** What a server that is not trusted says about its tool (E5): a quotation, so that it does not look like an instruction. */

/** The summary of such a tool. */
export function quotedSummary(server: string, text: string): string {
  return introOf(server) + JSON.stringify(text);
}

/** The quotation alone, for lists that have no room for its introduction; null if the summary is none. */
export function quotationIn(summary: string, server: string): string | null {
  const intro = introOf(server);
  return summary.startsWith(intro) ? summary.slice(intro.length) : null;
}

function introOf(server: string): string {
  return `The MCP server "${server}" describes it: `;
}
