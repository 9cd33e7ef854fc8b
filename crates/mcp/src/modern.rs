//! The envelope of the modern era: what every request says of itself in `_meta`.

/// The revision of the request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What the client can be asked for.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Who the client is.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The least level of log messages that the client wants during the request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who the server is, in results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The request that opened a stream, in its notifications.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
