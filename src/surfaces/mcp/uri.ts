/** Addresses of artifacts as resources of the Model Context Protocol (E4). They name an artifact and authorise nothing. */

export const ARTIFACT_TEMPLATE = 'cortex://sessions/{session}/artifacts/{artifact}';

export function artifactUri(sessionId: string, artifactId: string): string {
  return `cortex://sessions/${sessionId}/artifacts/${artifactId}`;
}

/** Null if it is not the address of an artifact. */
export function parseArtifactUri(uri: string): { readonly sessionId: string; readonly artifactId: string } | null {
  const [, sessionId, artifactId] =
    /^cortex:\/\/sessions\/(ses_[0-9a-f]{32})\/artifacts\/(art_[0-9a-f_]{1,64})$/.exec(uri) ?? [];
  return sessionId === undefined || artifactId === undefined ? null : { sessionId, artifactId };
}
