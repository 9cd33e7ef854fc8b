//! `toolman serve`: the door for services.

use gateway::auth::BearerToken;

use crate::cli::{Cli, Misuse, Serve};
use crate::data_dir;
use crate::host::Host;
use crate::up;

pub async fn run(cli: &Cli, serve: &Serve) -> anyhow::Result<i32> {
    let given = data_dir::given_token(serve.token_file.as_deref())?;
    let token = match given {
        Some(token) => token,
        None if serve.listen.ip().is_loopback() => data_dir::token(cli)?,
        None => {
            let reason = "others can reach this address, so a token of yours is needed; set \
                BEARER_TOKEN or pass `--token-file FILE`";
            return Err(Misuse(reason.into()).into());
        }
    };
    let listener = up::bind(serve.listen).await?;
    let address = listener.local_addr()?;
    let host = Host::start(cli)?;
    let banner = |_: &Host| format!("toolman serves http://{address}/mcp\n");
    up::serve(host, listener, BearerToken::new(&token), banner).await
}
