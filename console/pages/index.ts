/** The places of the system: what a conversation does not need, in a script of its own. */
export { AgentPage, AgentsPage } from './agents.tsx';
export { ApprovalsPage } from './approvals.tsx';
export { ManifestPage, ManifestsPage } from './manifests.tsx';
export { PlaygroundPage } from './playground.tsx';
export { SessionsPage } from './sessions.tsx';
export { SystemPage } from './system.tsx';
export { WorkflowsPage } from './workflows.tsx';
