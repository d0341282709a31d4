package public_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/public"
)

// A key as firn public keygen makes it. A program reads its own from a file, with
// LoadKeys, or from a variable, with ParseKeys.
const exampleKey = "firn-key-1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8WAs5X"

var orderForm public.Form // set by main, before anything is served

type orders struct{}

func (orders) Form() public.Form { return orderForm }

// OrderID is a bigint in the database, and an opaque id in JSON.
type OrderID = public.ID[orders]

func ExampleID() {
	keys, err := public.ParseKeys(exampleKey)
	if err != nil {
		log.Fatal(err)
	}
	orderForm, err = public.NewOpaque("orders", keys, &public.OpaqueOptions{Prefix: "order"})
	if err != nil {
		log.Fatal(err)
	}

	type order struct {
		ID    OrderID `json:"id"`
		Title string  `json:"title"`
	}
	b, err := json.Marshal(order{42, "a pound of nails"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(b))

	var o order
	if err := json.Unmarshal(b, &o); err != nil {
		log.Fatal(err)
	}
	fmt.Println(firn.ID(o.ID))
	// Output:
	// {"id":"order_1TWpm7SFEJf2CX5yWqz7yPQ","title":"a pound of nails"}
	// 42
}

func ExampleOpaque() {
	keys, err := public.ParseKeys(exampleKey)
	if err != nil {
		log.Fatal(err)
	}
	photos, err := public.NewOpaque("photo", keys, &public.OpaqueOptions{Prefix: "photo"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(photos.Parse("photo_1Gp6ynFxXwSnF5xJJpMZySW"))

	_, err = photos.Parse("photo_1Gp6ynFxXwSnF5xJJpMZySX") // made up
	fmt.Println(errors.Is(err, public.ErrForged))
	// Output:
	// 175928847299117063 <nil>
	// true
}

func ExampleCipher() {
	key, err := public.ParseKey(exampleKey)
	if err != nil {
		log.Fatal(err)
	}
	photos, err := public.NewCipher("photo", key, nil)
	if err != nil {
		log.Fatal(err)
	}
	for id := firn.ID(1); id <= 2; id++ {
		text, err := photos.Append(nil, id)
		fmt.Println(string(text), err)
	}
	// Output:
	// 8827767835975555171 <nil>
	// 5266932217014572939 <nil>
}

func ExampleEncoding() {
	fmt.Println(public.Base64URL.Parse("ybyPRoQWzX"))
	text, err := public.Base62.Append(nil, 908540701891980503)
	fmt.Println(string(text), err)
	_, err = public.Crockford.Parse("000000000fvck")
	fmt.Println(err)
	// Output:
	// 908540701891980503 <nil>
	// 1577oY68WQh <nil>
	// firn: crockford "000000000fvck", column 10: "f" is not one of its characters; is it "F"?
}
