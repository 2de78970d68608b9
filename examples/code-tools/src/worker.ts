import { createWorker } from 'cortex-edge';
import project from './project.generated.ts';

export default createWorker(project);
export {
  CatalogObject,
  CodeToolHost,
  CodeToolStatusObject,
  DirectoryObject,
  EndpointStatusObject,
  ExecutionIndexObject,
  IdentityObject,
  OutboundHost,
  RateLimitObject,
  RelicObject,
  ScheduleObject,
  SessionObject,
  SharedFeedObject,
} from 'cortex-edge';
export { LocalVectors } from './local-vectors.ts';
