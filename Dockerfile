# For those who have Docker; `make image` builds the same without it.
#
#   docker build --build-arg VERSION=$(git describe --tags --always) --tag tapp .
#
# `make image` has no base, and equal sources give equal images. Here both bases are what their tags are on that day: give them by
# digest (name@sha256:...) where builds have to be repeated.
ARG GO_IMAGE=golang:1.26 BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot
FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=devel TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH \
    go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$VERSION" -o /tapp .

# Roots of trust, and a user that is not root; no shell.
FROM ${BASE_IMAGE}
COPY --from=build /tapp /tapp
USER 65532:65532
ENTRYPOINT ["/tapp"]
LABEL org.opencontainers.image.title=tapp org.opencontainers.image.licenses=Apache-2.0
