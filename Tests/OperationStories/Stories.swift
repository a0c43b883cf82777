import ScenarioSupport
import Testing

/// Stories of what operators do, told through the daemon, one at a time in a runner.
///
/// The tag of a suite says whether it tolerates many other runners or few.
@Suite(.serialized, .timeLimit(.minutes(5)), .grouped)
struct Stories {}
