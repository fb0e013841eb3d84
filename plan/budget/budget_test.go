package budget

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestScale(t *testing.T) {
	for _, test := range []struct {
		budget intstr.IntOrString
		total  int
		want   int
		ok     bool
	}{
		{intstr.FromInt32(1), 10, 1, true},
		{intstr.FromInt32(20), 10, 20, true},
		{intstr.FromInt32(0), 10, 0, false},
		{intstr.FromInt32(-1), 10, -1, false},
		{intstr.FromString("1%"), 10, 1, true},
		{intstr.FromString("10%"), 10, 1, true},
		{intstr.FromString("11%"), 10, 2, true},
		{intstr.FromString("34%"), 3, 2, true},
		{intstr.FromString("100%"), 10, 10, true},
		{intstr.FromString("100%"), 0, 1, true},
		{intstr.FromString("1%"), 0, 1, true},
		{intstr.FromString("99%"), 50_000, 49_500, true},
		{intstr.FromString("0%"), 10, 0, false},
		{intstr.FromString("101%"), 10, 0, false},
		{intstr.FromString("-5%"), 10, 0, false},
		{intstr.FromString("+5%"), 10, 0, false},
		{intstr.FromString("005%"), 10, 0, false},
		{intstr.FromString("5"), 10, 0, false},
		{intstr.FromString("%"), 10, 0, false},
		{intstr.FromString(""), 10, 0, false},
		{intstr.FromString("half"), 10, 0, false},
		{intstr.FromString("1.5%"), 10, 0, false},
		{intstr.FromString("5 %"), 10, 0, false},
		{intstr.FromString("99999999999999999999%"), 10, 0, false},
	} {
		got, ok := Scale(test.budget, test.total)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("Scale(%s, %d) is %d, %t; want %d, %t", test.budget.String(), test.total, got, ok, test.want, test.ok)
		}
	}
}
