package v1

// Names that an App and its children carry.
const (
	// GroupName is the API group.
	GroupName = "appcontroller.k8s.io"
	// Kind of the API.
	Kind = "App"

	// Component is who events about Apps come from, and the field manager of their
	// children.
	Component = "app-controller"
	// ContainerName is the name of the one container that an App asks for.
	ContainerName = "app-deploy-container"
	// PortName is the name of the Service's port.
	PortName = "app-service"

	// LabelApp is the label with the name of the App, on its children and pods. It
	// is all that their selectors ask for, and unique in a namespace.
	LabelApp = "appcontroller.k8s.io/app"
	// AnnotationApplied is the annotation of a child with the hash of what was last
	// applied to it, so that a field that leaves the App leaves the child.
	AnnotationApplied = "appcontroller.k8s.io/applied"
)

// Reasons of events, and of conditions.
const (
	// ReasonSynced is the reason of the event that the children are as the App says.
	ReasonSynced = "Synced"
	// ReasonResourceExists is the reason for a child's name being taken.
	ReasonResourceExists = "ErrResourceExists"
)
