module fleet

go 1.26

require (
	github.com/kumulus-io/kumulus/sdk/go/kumulus v0.1.0
	github.com/pulumi/pulumi/sdk/v3 v3.246.0
)

// Written by `pulumi package add`.
replace github.com/kumulus-io/kumulus/sdk/go/kumulus => ./sdks/kumulus
